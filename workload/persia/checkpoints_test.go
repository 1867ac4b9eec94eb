package persia

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// withCheckpoints makes checkpoints in the folder of a run, and counts time while they are
// removed: replicas report every five seconds, if the coordinator listens.
const withCheckpoints = `
import os, shutil
import checkpoints

root = settings.checkpoints
content = {"dense.pt": "a model", "opt.pt": "an optimizer", "embedding_dump_done": "---\nnum_shards: 1\n"}

def write(name, *files):
    """Write files of a checkpoint, those that are written later being newer."""
    global written
    for file in files:
        path = os.path.join(root, name, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as opened:
            opened.write(content.get(os.path.basename(file), "x"))
        os.utime(path, (written, written))
    written += 1

def write_complete(name):
    write(name, "s0/a.emb", "dense.pt", *checkpoints.MARKS)

def left():
    """The files that there are, for people."""
    files = [os.path.relpath(os.path.join(folder, file), root) for folder, _, files in os.walk(root) for file in files]
    return " ".join(sorted(files)) or "nothing"

def remove_slowly(folder, **_):
    global now
    print(f"removing {os.path.relpath(folder, root)}: {' '.join(sorted(os.listdir(folder)))}")
    for _ in range(13):
        now += 5
        if not job.lock.locked():
            all_report(job.attempt, "running")
    remove_tree(folder)

written = 1
remove_tree, shutil.rmtree = shutil.rmtree, remove_slowly
`

// TestCheckpointsAreRemovedSlowly: no replica is lost while the coordinator removes a
// checkpoint, which takes longer than a replica may be silent. At any time, the remaining
// files are an incomplete checkpoint.
func TestCheckpointsAreRemovedSlowly(t *testing.T) {
	t.Parallel()
	const runs = "running attempt 2: 0 of 1 nn-workers and 0 of 1 dataloaders have finished"
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"before the attempt": {`
write("attempt-1/broken", "s0/a.emb", "dense.pt", "opt.pt")
all_report(0, "waiting")
job.keeper.tidy()
`, []string{"log: attempt 2 starts from the beginning", "removing attempt-1/broken/s0: a.emb", runs}},
		"in the attempt": {`
os.makedirs(os.path.join(root, "attempt-1"))
all_report(0, "waiting")
for step in (1, 2, 3):
    write_complete(f"attempt-2/{step}")
job.keeper.keep()
job.keeper.tidy()
`, []string{"log: attempt 2 starts from the beginning", "log: new checkpoint FOLDER/attempt-2/3", "removing attempt-2/1/s0: a.emb", runs}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := withCheckpoints + test.script + "report(\"nn-worker\", 2, \"running\")\nprint(job.status())\n"
			folder := t.TempDir()
			told := coordinate(t, script, map[string]any{"checkpoints": folder, "lost_seconds": 60, "stuck_seconds": 0})
			assert.Equal(t, strings.Join(test.want, "\n"), strings.ReplaceAll(strings.Join(told, "\n"), folder, "FOLDER"))
		})
	}
}

// TestCheckpointsWithinOthers: a script may write one checkpoint into the folder of an
// attempt and others below it. Removing one leaves the others.
func TestCheckpointsWithinOthers(t *testing.T) {
	t.Parallel()
	const begin = `
all_report(0, "waiting")
job.keeper.tidy()
print(left())
`
	for name, test := range map[string]struct {
		script string
		want   string
	}{
		"the last one is interrupted": {`
write_complete("attempt-9/step-100")
write("attempt-9", "s0/a.emb", "dense.pt", "embedding_dump_done")` + begin, files("attempt-9/step-100")},
		"all are interrupted": {`
write("attempt-9/step-100", "dense.pt", "s0/a.emb", "notes")
write("attempt-9", "dense.pt", "s0/a.emb", "notes")` + begin, "attempt-9/notes attempt-9/step-100/notes"},
		"files of the script": {`
write_complete("attempt-9/step-100")
write("attempt-9/step-100", "metrics.csv")
write_complete("attempt-9/step-200")
write_complete("attempt-9/step-300")
` + begin, "attempt-9/step-100/metrics.csv " + files("attempt-9/step-200", "attempt-9/step-300")},
		"the oldest is too many": {`
write_complete("attempt-9")
write_complete("attempt-9/step-100")
write_complete("attempt-9/step-200")
` + begin, files("attempt-9/step-100", "attempt-9/step-200")},
		"an inner one is too many": {`
write_complete("attempt-9/step-100")
write_complete("attempt-9/step-200")
write_complete("attempt-9")
` + begin, files("attempt-9", "attempt-9/step-200")},
		"one with the name of a part": {`
write_complete("attempt-9/s100")
write("attempt-9/s200", "s0/a.emb", "dense.pt")` + begin, files("attempt-9/s100")},
		"one with the name of a part beside another": {`
write_complete("attempt-9/s100")
write_complete("attempt-9")
write_complete("attempt-9/step-200")
write_complete("attempt-9/step-300")` + begin, files("attempt-9/s100", "attempt-9/step-200", "attempt-9/step-300")},
		"other folders of the script": {`
write("attempt-9", "dense.pt", "s0/a.emb", "logs/today")` + begin, "attempt-9/logs/today"},
		"exported embeddings": {`
write("attempt-9/export", "s0/a.emb", "embedding_dump_done")
write("attempt-9/exporting", "s0/a.emb")
write("attempt-9", "s0/a.emb")` + begin, "attempt-9/export/embedding_dump_done attempt-9/export/s0/a.emb attempt-9/exporting/s0/a.emb attempt-9/s0/a.emb"},
		"an optimizer with another name": {`
write("attempt-9/1", "s0/a.emb", "dense.pt", "embedding_dump_done", "adam.pt")` + begin, "attempt-9/1/adam.pt attempt-9/1/dense.pt attempt-9/1/embedding_dump_done attempt-9/1/s0/a.emb"},
		"what is in no attempt's folder": {`
write("exports/1", "s0/a.emb", "dense.pt")
os.makedirs(os.path.join(root, "attempt-9"))
os.symlink(os.path.join(root, "exports/1"), os.path.join(root, "attempt-9/1"))
os.symlink(os.path.join(root, "exports"), os.path.join(root, "attempt-8"))` + begin, "exports/1/dense.pt exports/1/s0/a.emb"},
		"a link to the newest": {`
write_complete("attempt-9/step-100")
write_complete("attempt-9/step-200")
os.makedirs(os.path.join(root, "attempt-1"))
os.symlink(os.path.join(root, "attempt-9/step-200"), os.path.join(root, "attempt-1/newest"))` + begin, files("attempt-9/step-100", "attempt-9/step-200")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := coordinate(t, withCheckpoints+test.script, map[string]any{"checkpoints": t.TempDir()})
			assert.Equal(t, test.want, said[len(said)-1])
		})
	}
}

// TestCheckpointsAreRemovedTwice: a file that another process removes meanwhile does not leave
// the rest of its checkpoint behind.
func TestCheckpointsAreRemovedTwice(t *testing.T) {
	t.Parallel()
	const script = withCheckpoints + `
shutil.rmtree = remove_tree
write("attempt-1", "dense.pt", *[f"s{server}/{number}.emb" for server in range(2) for number in range(9)])

def unlink(*arguments, **named):
    os.unlink = real
    real(*arguments, **named)
    raise FileNotFoundError(2, "another process was faster")

real, os.unlink = os.unlink, unlink
all_report(0, "waiting")
job.keeper.tidy()
print(os.unlink == real, left())
`
	assert.Equal(t, []string{"log: attempt 2 starts from the beginning", "True nothing"}, coordinate(t, script, map[string]any{"checkpoints": t.TempDir()}))
}

// TestCheckpointsCannotBeRead checks that a volume that fails for a while does not count as empty:
// no checkpoint is removed, and the job continues later.
func TestCheckpointsCannotBeRead(t *testing.T) {
	t.Parallel()
	const (
		broken = `
import builtins, errno

broken = set()

def breakable(name, function):
    """A function that fails in the folder of the run while its name is broken."""
    def call(path, *arguments, **named):
        if name in broken and str(path).startswith(root):
            raise OSError(errno.EIO, "Input/output error")
        return function(path, *arguments, **named)
    return call

class TornFile:
    """A file of which the first bytes can be read."""
    def __init__(self, file):
        self.file = file
    def __getattr__(self, name):
        return getattr(self.file, name)
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.file.close()
    def read(self, *size):
        if self.file.tell():
            raise OSError(errno.EIO, "Input/output error")
        return self.file.read(*size)

def open_file(path, *arguments, **named):
    file = opened(path, *arguments, **named)
    return TornFile(file) if "end" in broken and str(path).endswith("opt.pt") else file

opened = open
os.scandir, builtins.open = breakable("scandir", os.scandir), breakable("open", open_file)
breaks, works = broken.add, broken.clear

checkpoints_root = root
write_complete("attempt-1/1")
write("attempt-1/2", "s0/a.emb", "dense.pt")
`
		waits = "waiting after attempt 0 (the checkpoints cannot be read: [Errno 5] Input/output error): backing off"
		again = "waiting after attempt 0 (the checkpoints cannot be read: [Errno 5] Input/output error, 2 times in a row): backing off"
		says  = "log: the checkpoints cannot be read: [Errno 5] Input/output error"
		runs  = "running attempt 2: 0 of 1 nn-workers and 0 of 1 dataloaders have finished"
		start = "log: attempt 2 starts from RUN/attempt-1/1"
		left  = "log: RUN/attempt-1/2 cannot be removed: [Errno 5] Input/output error"
	)
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"the folders before an attempt": {`
breaks("scandir")
all_report(0, "waiting")
job.keeper.tidy()
print(job.status())
now += 9
works()
all_report(0, "waiting")
print(job.status())
now += 1
all_report(0, "waiting")
print(job.status())
`, []string{says, waits, waits, start, runs}},
		"the marks before an attempt": {`
breaks("open")
all_report(0, "waiting")
print(job.status())
now += 10
all_report(0, "waiting")
print(job.status())
works()
now += 20
all_report(0, "waiting")
print(job.status())
`, []string{says, waits, again, start, runs}},
		"the end of a file before an attempt": {`
content["opt.pt"] = "PK\x03\x04" + "x" * 99999 + "PK\x05\x06" + "\0" * 18
write("attempt-1/1", "opt.pt")
breaks("end")
all_report(0, "waiting")
print(job.status())
works()
now += 10
all_report(0, "waiting")
print(job.status())
`, []string{says, waits, start, runs}},
		"what the coordinator's predecessor left": {`
root, settings.checkpoints = settings.state_directory, None
breaks("open")
job.keeper.keep()
print(job.status())
works()
root = settings.checkpoints = checkpoints_root
now += 10
all_report(0, "waiting")
print(job.status())
`, []string{says, "waiting after attempt 0 (the checkpoints cannot be read: [Errno 5] Input/output error): dataloader 0 is not there; nn-worker 0 is not there", start, runs}},
		"that the job was complete": {`
settings.state_directory = root
job = coordinator.Coordinator(settings, job.log, job.clock)
os.makedirs(job.memory.file)
job.keeper.keep()
os.rmdir(job.memory.file)
with open(job.memory.file, "w") as file:
    json.dump({"attempt": 7, "done": True}, file)
now += 10
job.log = lambda text: None
all_report(0, "waiting")
print(job.status())
`, []string{"log: the checkpoints cannot be read: [Errno 21] Is a directory: 'RUN/coordinator.json'", "complete in attempt 7"}},
		"in an attempt": {`
all_report(0, "waiting")
write_complete("attempt-2/1")
write_complete("attempt-2/2")
for name in ("scandir", "open"):
    breaks(name)
    now += 20
    job.keeper.keep()
    works()
print(job.status())
now += 40
job.keeper.keep()
breaks("scandir")
job.keeper.tidy()
works()
print(len(job.keeper.unneeded), "removed later")
shutil.rmtree = remove_tree
job.keeper.tidy()
print(left())
`, []string{start, says, runs + "; the checkpoints cannot be read: [Errno 5] Input/output error, 2 times in a row", "log: new checkpoint RUN/attempt-2/2", left, "1 removed later", files("attempt-1/1", "attempt-2/1", "attempt-2/2")}},
		"when an attempt ends": {`
all_report(0, "waiting")
breaks("scandir")
report("nn-worker", 2, "failed")
print(job.status())
works()
now += 10
report("dataloader", 2, "waiting")
print(job.status())
now += 10
all_report(2, "waiting")
`, []string{start, "log: attempt 2 ends: nn-worker 0: ", says, strings.Replace(waits, "attempt 0", "attempt 2", 1)[:len(waits)-len("backing off")] + "reading the checkpoints",
			"log: attempt 3 starts in 10 s or later", "waiting after attempt 2 (nn-worker 0: ): backing off", "log: attempt 3 starts from RUN/attempt-1/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := t.TempDir()
			said := coordinate(t, withCheckpoints+broken+test.script, map[string]any{"checkpoints": run, "backoff_seconds": 10, "stuck_seconds": 0})
			assert.Equal(t, strings.Join(test.want, "\n"), strings.ReplaceAll(strings.Join(said, "\n"), run, "RUN"))
		})
	}
}

// files lists the files of complete checkpoints.
func files(checkpoints ...string) string {
	var all []string
	for _, checkpoint := range checkpoints {
		for _, file := range []string{"dense.pt", "embedding_dump_done", "opt.pt", "s0/a.emb"} {
			all = append(all, path.Join(checkpoint, file))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestCheckpointsAreWhole: PERSIA creates each file empty and then fills it, so that the
// files of an interrupted checkpoint may all be there.
func TestCheckpointsAreWhole(t *testing.T) {
	t.Parallel()
	const (
		archive = `
import collections, io, pickle, struct, sys, types, zipfile

torch = sys.modules["torch"] = types.ModuleType("torch")

class FloatStorage:
    __module__, __qualname__ = "torch", "FloatStorage"

class Tensor:
    def __reduce__(self):
        return torch.rebuild, (FloatStorage(), 0, (5000,), (1,))

def rebuild(*args):
    raise AssertionError("reading a checkpoint runs no code of PyTorch")

rebuild.__module__, rebuild.__qualname__ = "torch", "rebuild"
torch.FloatStorage, torch.rebuild = FloatStorage, rebuild

class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        return ("storage", FloatStorage, "7", "cpu", 5000, None) if isinstance(value, FloatStorage) else None

def legacy():
    """A file of PyTorch before 1.6."""
    file = io.BytesIO()
    for value in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}):
        pickle.dump(value, file, 2)
    Pickler(file, 2).dump(collections.OrderedDict(state={"step": 3}, weight=Tensor(), params=[1, {2}]))
    pickle.dump(["7"], file, 2)
    file.write(struct.pack("<q", 5000) + bytes(4 * 5000))
    return file.getvalue()

def archive():
    """A file of PyTorch since 1.6."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("archive/data.pkl", bytes(99999))
    return file.getvalue()

def rewrite(name, change):
    path = os.path.join(root, "attempt-1/new", name)
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(change(content))

write_complete("attempt-1/old")
write_complete("attempt-1/new")
for name in ("dense.pt", "opt.pt"):
    rewrite(name, lambda content: archive())
`
		begin = `
all_report(0, "waiting")
print(os.path.basename(job.resume))
job.keeper.tidy()
print(left())
`
	)
	for name, test := range map[string]struct {
		script string
		older  bool
		want   string
	}{
		"a whole one":                     {"", false, "new"},
		"an empty optimizer":              {`rewrite("opt.pt", lambda content: b"")`, false, "old"},
		"half an optimizer":               {`rewrite("opt.pt", lambda content: content[:50000])`, false, "old"},
		"an optimizer without its end":    {`rewrite("opt.pt", lambda content: content[:-1])`, false, "old"},
		"half a model":                    {`rewrite("dense.pt", lambda content: content[:50000])`, false, "old"},
		"an older file":                   {`rewrite("opt.pt", lambda content: legacy())`, false, "new"},
		"an older file without its end":   {`rewrite("opt.pt", lambda content: legacy()[:-1])`, false, "old"},
		"an older file without storages":  {`rewrite("opt.pt", lambda content: legacy()[:-20008])`, false, "old"},
		"half a pickle of an older file":  {`rewrite("opt.pt", lambda content: legacy()[:90])`, false, "old"},
		"one pickle of an older file":     {`rewrite("opt.pt", lambda content: legacy()[:16])`, false, "old"},
		"the first bytes of an older one": {`rewrite("opt.pt", lambda content: b"\x80\x02\x8a")`, false, "old"},
		"an older model without its end":  {`rewrite("dense.pt", lambda content: legacy()[:-1])`, false, "old"},
		"a pickle of unusual form":        {`rewrite("opt.pt", lambda content: legacy()[:16] + b"\x80\x02?.")`, false, "new"},
		"something else":                  {`rewrite("opt.pt", lambda content: b"opt")`, false, "new"},
		"an empty mark":                   {`rewrite("embedding_dump_done", lambda content: b"")`, false, "old"},
		"half a mark":                     {`rewrite("embedding_dump_done", lambda content: b"---\nnum_shards: 1")`, false, "old"},
		"fewer servers than it counts":    {`rewrite("embedding_dump_done", lambda content: b"---\nnum_shards: 2\n")`, false, "old"},
		"the mark of an older release":    {`rewrite("embedding_dump_done", lambda content: b"")`, true, "new"},
		"half a mark of an older release": {`rewrite("embedding_dump_done", lambda content: b"---\nnum")`, true, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := coordinate(t, withCheckpoints+archive+test.script+begin, map[string]any{"checkpoints": t.TempDir(), "older": test.older})
			assert.Equal(t, test.want, said[1])
			want := files("attempt-1/new", "attempt-1/old")
			if test.want == "old" {
				want = files("attempt-1/old")
			}
			assert.Equal(t, want, said[len(said)-1], "what is not whole is removed")
		})
	}
}

// TestCheckpointsAreDoubted: an attempt that fails before it gets on leaves its checkpoint
// in doubt, and the next one begins with the one before.
func TestCheckpointsAreDoubted(t *testing.T) {
	t.Parallel()
	const attempts = `
write_complete("attempt-1/1")
write_complete("attempt-1/2")
job.log = lambda text: None

def restart():
    global now
    while job.phase != coordinator.START:
        now += 1000
        all_report(job.attempt, "waiting")
    print(os.path.relpath(job.resume, root))

def tell(*progress):
    for value in progress:
        report("nn-worker", job.attempt, "running", value)

def fail(**more):
    report("nn-worker", job.attempt, "failed", **more)

restart()
`
	for name, test := range map[string]struct {
		script string
		keep   int
		want   string
	}{
		"before its first progress": {`tell(1); fail(); restart()`, 2, "2 1"},
		"after its first progress":  {`tell(1, 2); fail(); restart()`, 2, "2 2"},
		"before its command starts": {`tell(1); fail(doubts=False); restart()`, 2, "2 2"},
		"after another coordinator's order": {`
tell(1); report("nn-worker", job.attempt, "waiting"); restart()`, 2, "2 2"},
		"of a changed script that tells nothing": {`
tell(1)
settings.revision = "2"
job = coordinator.Coordinator(settings, job.log, job.clock)
restart(); fail(); restart()`, 2, "2 2 1"},
		"with a new checkpoint that nothing has seen": {`
tell(1)
write_complete(f"attempt-{job.attempt}/3")
fail(); restart()
job.keeper.tidy(); tell(1); fail(); restart()`, 1, "2 3 2"},
		"with a checkpoint from a backup": {`
tell(1)
write_complete("attempt-99/9")
now += 60; job.keeper.keep(); fail(); restart()
tell(1); fail(); restart()`, 9, "2 9 1"},
		"with another cause": {`
for _ in range(3):
    tell(1); fail(); restart()`, 2, "2 1 2 1"},
		"a script that tells nothing": {`
for _ in range(3):
    fail(); restart()`, 2, "2 2 1 1"},
		"a replica that is lost": {`
settings.lost_seconds = job.roster.lost_seconds = 60
tell(1)
now += 61
tell(1)
restart()`, 2, "2 2"},
		"in another process": {`
tell(1); fail()
job = coordinator.Coordinator(settings, job.log, job.clock)
restart()`, 2, "2 1"},
		"the coordinator with the nn-worker": {`
tell(1)
job = coordinator.Coordinator(settings, job.log, job.clock)
restart()`, 2, "2 1"},
		"one that is kept alone": {`
job.keeper.tidy(); tell(1); fail(); restart(); job.keeper.tidy()`, 1, "2 2"},
		"one that worked is not removed": {`
tell(1, 2)
write_complete(f"attempt-{job.attempt}/3")
now += 60; job.keeper.keep(); job.keeper.tidy(); fail(); restart()
tell(1)
now += 60; job.keeper.keep(); job.keeper.tidy(); fail(); restart()
`, 1, "2 3 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := coordinate(t, withCheckpoints+"shutil.rmtree = remove_tree\n"+attempts+test.script+"\n",
				map[string]any{"checkpoints": t.TempDir(), "stuck_seconds": 0, "attempts": 9, "keep": test.keep})
			var resumed []string
			for _, checkpoint := range said {
				resumed = append(resumed, path.Base(checkpoint))
			}
			assert.Equal(t, test.want, strings.Join(resumed, " "))
		})
	}
}

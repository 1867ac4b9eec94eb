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

def write(name, *files):
    """Write files of a checkpoint, those that are written later being newer."""
    global written
    for file in files:
        path = os.path.join(root, name, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").close()
        os.utime(path, (written, written))
    written += 1

def write_complete(name):
    write(name, "s0/a.emb", "dense.pt", *checkpoints.MARKS)

def left():
    """The files that there are, for people."""
    files = [os.path.relpath(os.path.join(folder, file), root) for folder, _, files in os.walk(root) for file in files]
    return " ".join(sorted(files)) or "nothing"

def remove_slowly(folder, *_):
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

// TestCheckpointsAreRemovedSlowly: nobody is lost while a checkpoint is removed, which takes
// longer than a replica may be silent. What is left of it at any time is incomplete.
func TestCheckpointsAreRemovedSlowly(t *testing.T) {
	t.Parallel()
	const runs = "running attempt 2: 0 of 1 trainers and 0 of 1 data loaders have finished"
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"before the attempt": {`
write("attempt-1/broken", "s0/a.emb", "dense.pt", "opt.pt")
all_report(1, "waiting")
job.tidy()
`, []string{"log: attempt 2 starts from the beginning", "removing attempt-1/broken: dense.pt s0", runs}},
		"in the attempt": {`
all_report(1, "waiting")
for step in (1, 2, 3):
    write_complete(f"attempt-2/{step}")
job.look()
job.tidy()
`, []string{"log: attempt 2 starts from the beginning", "removing attempt-2/1: dense.pt s0", runs}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := withCheckpoints + test.script + "report(\"nn-worker\", 2, \"running\")\nprint(job.status())\n"
			assert.Equal(t, test.want, coordinate(t, script, map[string]any{"checkpoints": t.TempDir(), "lost_seconds": 60}))
		})
	}
}

// TestCheckpointsWithinOthers: a script may write one checkpoint into the folder of an
// attempt and others below it. Removing one leaves the others.
func TestCheckpointsWithinOthers(t *testing.T) {
	t.Parallel()
	const begin = `
all_report(9, "waiting")
job.tidy()
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
write("attempt-9/step-100", "s0/a.emb", "notes")
write("attempt-9", "s0/a.emb", "notes")` + begin, "nothing"},
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
		"other folders of the script": {`
write("attempt-9", "s0/a.emb", "logs/today")` + begin, "attempt-9/logs/today"},
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

// TestCheckpointsCannotBeRead: a volume that fails for a while is not an empty one. Nothing
// begins anew or is removed, and the job goes on later.
func TestCheckpointsCannotBeRead(t *testing.T) {
	t.Parallel()
	const (
		broken = `
import errno

def fail(*_, **__):
    raise OSError(errno.EIO, "Input/output error")

working = {name: getattr(os, name) for name in ("listdir", "stat")}

def breaks(name):
    setattr(os, name, fail)

def works():
    vars(os).update(working)

write_complete("attempt-1/1")
write("attempt-1/2", "s0/a.emb", "dense.pt")
`
		waits = "waiting after attempt 1 (the checkpoints cannot be read: [Errno 5] Input/output error): backing off"
		says  = "log: the checkpoints cannot be read: [Errno 5] Input/output error"
		runs  = "running attempt 2: 0 of 1 trainers and 0 of 1 data loaders have finished"
		start = "log: attempt 2 starts from RUN/attempt-1/1"
		left  = "log: RUN/attempt-1/2 cannot be removed: [Errno 5] Input/output error"
	)
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"the folders before an attempt": {`
breaks("listdir")
all_report(1, "waiting")
job.tidy()
print(job.status())
now += 9
works()
all_report(1, "waiting")
print(job.status())
now += 1
all_report(1, "waiting")
print(job.status())
`, []string{says, waits, waits, start, runs}},
		"the marks before an attempt": {`
breaks("stat")
all_report(1, "waiting")
print(job.status())
now += 10
all_report(1, "waiting")
print(job.status())
works()
now += 10
all_report(1, "waiting")
print(job.status())
`, []string{says, waits, waits, start, runs}},
		"what the coordinator's predecessor left": {`
breaks("listdir")
job = coordinator.Coordinator(settings, job.log, job.clock)
print(job.status())
works()
now += 10
all_report(0, "waiting")
print(job.status())
`, []string{says, "waiting after attempt 0 (the checkpoints cannot be read: [Errno 5] Input/output error): dataloader 0 is not there; nn-worker 0 is not there", start, runs}},
		"that the job was complete": {`
os.makedirs(job.memory.file)
job = coordinator.Coordinator(settings, lambda text: None, job.clock)
os.rmdir(job.memory.file)
with open(job.memory.file, "w") as file:
    json.dump({"attempt": 7, "done": True}, file)
now += 10
all_report(0, "waiting")
print(job.status())
`, []string{"complete in attempt 7"}},
		"in an attempt": {`
all_report(1, "waiting")
write_complete("attempt-2/1")
write_complete("attempt-2/2")
for name in working:
    breaks(name)
    job.look()
    job.tidy()
    works()
print(job.status())
print(len(job.unneeded), "removed later")
job.look()
shutil.rmtree = remove_tree
job.tidy()
print(left())
`, []string{start, says, left, says, left, runs, "1 removed later", files("attempt-1/1", "attempt-2/1", "attempt-2/2")}},
		"when an attempt ends": {`
all_report(1, "waiting")
breaks("listdir")
report("nn-worker", 2, "failed")
print(job.status())
works()
now += 10
all_report(2, "waiting")
`, []string{start, "log: the checkpoints cannot be read, and the newest one known is RUN/attempt-1/1: [Errno 5] Input/output error",
			"log: attempt 2 ends: nn-worker 0: ; the next one starts in 10 s or later", "waiting after attempt 2 (nn-worker 0: ): backing off", "log: attempt 3 starts from RUN/attempt-1/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := t.TempDir()
			said := coordinate(t, withCheckpoints+broken+test.script, map[string]any{"checkpoints": run, "backoff_seconds": 10})
			assert.Equal(t, strings.Join(test.want, "\n"), strings.ReplaceAll(strings.Join(said, "\n"), run, "RUN"))
		})
	}
}

// files are those of complete checkpoints, for people.
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

package persia

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCoordinatorMeanwhile: what happens while the coordinator reads or writes a volume.
func TestCoordinatorMeanwhile(t *testing.T) {
	t.Parallel()
	const (
		meanwhile = `
import threading
import checkpoints, memory

def meanwhile(module, name, happens):
    """Let something happen once, at the end of a function."""
    function = getattr(module, name)
    def call(*arguments, **named):
        result = function(*arguments, **named)
        setattr(module, name, function)
        happens()
        return result
    setattr(module, name, call)

def tell(role, **more):
    job.report(dict({
        "role": role, "replica": 0, "run": "1", "pod": role, "revision": "1", "instance": role, "attempt": 1,
        "state": "running", "reason": "", "progress": None, "blocked": "", "done": False,
    }, **more))

def another():
    """Another coordinator takes over."""
    coordinator.Coordinator(settings, lambda text: None, lambda: now).keeper.keep()
`
		starts = "log: attempt 1 starts from the beginning"
	)
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"a replica tells that the job is complete": {`
all_report(0, "waiting")
meanwhile(checkpoints, "scan", lambda: tell("dataloader", done=True, state="finished"))
report("nn-worker", 1, "failed")
job.keeper.keep()
print(job.status())
`, []string{starts, "log: attempt 1 ends: nn-worker 0: ", "log: finished in attempt 1", "complete in attempt 1"}},
		"the attempt ends": {`
all_report(0, "waiting")
all_report(1, "running")
meanwhile(checkpoints, "scan", lambda: tell("nn-worker", state="failed"))
job.keeper.keep()
print(job.memory.failures)
job.keeper.keep()
print(job.memory.failures)
`, []string{starts, "log: attempt 1 ends: nn-worker 0: ", "0", "log: attempt 2 starts in 0 s or later", "1"}},
		"another coordinator takes over": {`
job.keeper.keep()
meanwhile(checkpoints, "scan", another)
all_report(0, "waiting")
print(report("nn-worker", 0, "waiting")["order"], job.starting, job.ended)
`, []string{"log: a newer coordinator has taken over: standing down", "stop False None"}},
		"a write that hung is done after another has taken over": {`
others = []

def take_over():
    others.append(coordinator.Coordinator(settings, lambda text: None, lambda: now))
    others[0].keeper.keep()
    others[0].finish()
    others[0].keeper.keep()

job.keeper.keep()
meanwhile(memory.Memory, "check", take_over)
job.keeper.remember(failed="overwritten")
job.keeper.record()
print(job.memory.read()["failed"])
others[0].keeper.keep()
print(job.memory.read()["done"], job.memory.read()["failed"])
job.keeper.keep()
`, []string{"overwritten", "True ", "log: a newer coordinator has taken over: standing down"}},
		"another coordinator takes over before a checkpoint is removed": {`
checkpoint = os.path.join(settings.state_directory, "run", "attempt-1")
os.makedirs(os.path.join(checkpoint, "s0"))
job.keeper.keep()
job.keeper.drop({checkpoint})
another()
job.keeper.tidy()
print(os.listdir(checkpoint))
`, []string{"log: a newer coordinator has taken over: standing down", "['s0']"}},
		"the pod ends": {`
write = memory.Memory.write

def late(self, values):
    memory.Memory.write = write
    job.keeper.release(0.2)
    write(self, values)

job.keeper.keep()
memory.Memory.write = late
job.keeper.remember(running=True)
job.keeper.record()
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join()
print(job.memory.read()["running"])
`, []string{"False"}},
		"the number of the attempt cannot be recorded": {`
job.keeper.keep()
replace = os.replace

def full(*_):
    raise OSError(5, "Input/output error")

os.replace = full
all_report(0, "waiting")
print(job.status())
os.replace = replace
now += 1
all_report(0, "waiting")
print(job.memory.read()["attempt"])
`, []string{
			"log: the state of the run cannot be recorded: [Errno 5] Input/output error",
			"waiting after attempt 0 (the job starts): backing off; this cannot be recorded: [Errno 5] Input/output error, 2 times in a row",
			starts, "1",
		}},
		"a replica fails while the number of the attempt is recorded": {`
all_report(0, "waiting")
all_report(1, "running")
job.report(dict(job.roster.reports["dataloader", 0], state="failed"))
job.keeper.keep()
meanwhile(memory, "flush_folder", lambda: tell("nn-worker", attempt=1, state="waiting", blocked="NATS does not answer"))
all_report(1, "waiting")
print(job.phase, job.memory.running, job.memory.read()["running"])
`, []string{starts, "log: attempt 1 ends: dataloader 0: ", "log: attempt 2 starts in 0 s or later", "stop False False"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, coordinate(t, meanwhile+test.script, nil))
		})
	}
}

// TestCoordinatorRestoredBackup: the folder of a later attempt that appears during an attempt
// does not disturb it, and no later attempt writes there.
func TestCoordinatorRestoredBackup(t *testing.T) {
	t.Parallel()
	const script = `
all_report(0, "waiting")
all_report(1, "running")
os.makedirs(os.path.join(settings.checkpoints, "attempt-99"))
job.keeper.keep()
print(report("dataloader", 1, "running")["order"], job.status())
report("dataloader", 1, "failed")
all_report(1, "waiting")
`
	assert.Equal(t, strings.Split(`log: attempt 1 starts from the beginning
go running attempt 1: 0 of 1 nn-workers and 0 of 1 dataloaders have finished
log: attempt 1 ends: dataloader 0: 
log: attempt 100 starts in 0 s or later
log: attempt 100 starts from the beginning`, "\n"), coordinate(t, script, map[string]any{"checkpoints": t.TempDir()}))
}

// TestCoordinatorLacksTheRecord: without a record of an attempt that a replica reports, the
// coordinator that started it may be cut off. No attempt starts beside it.
func TestCoordinatorLacksTheRecord(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a report before the record is read": `report("dataloader", 3, "waiting"); report("nn-worker", 0, "waiting")`,
		"a report after the record is read":  `report("nn-worker", 0, "waiting"); report("dataloader", 3, "waiting")`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script += `
for now in (1, 79, 81):
    all_report(3, "waiting")
    print(job.status())
`
			assert.Equal(t, []string{
				"waiting after attempt 3 (the job starts): backing off", "waiting after attempt 3 (the job starts): backing off",
				"log: attempt 4 starts from the beginning", "running attempt 4: 0 of 1 nn-workers and 0 of 1 dataloaders have finished",
			}, coordinate(t, script, map[string]any{"lost_seconds": 60, "stuck_seconds": 0}))
		})
	}
}

// TestCoordinatorGoesOn: an error that nothing expects does not end the work of keep and tidy.
func TestCoordinatorGoesOn(t *testing.T) {
	t.Parallel()
	const script = `
import threading

def fails_once(name):
    again = threading.Event()
    tried = []
    def work():
        tried.append(name)
        if len(tried) == 1:
            raise TypeError(name)
        again.set()
    setattr(job.keeper, name, work)
    return again

job.keeper.drop({"a checkpoint"})
work = [fails_once("keep"), fails_once("tidy")]
logged = []
job.log = logged.append
job.keeper.run()
print(work[0].wait(60))
job.keeper.drop({"a checkpoint"})
print(work[1].wait(60))
print(sorted(logged))
`
	assert.Equal(t, []string{"True", "True", `["keep continues after TypeError('keep')", "tidy continues after TypeError('tidy')"]`},
		coordinate(t, script, map[string]any{"look_seconds": 0.1}))
}

// TestCoordinatorIncompleteRecord: a record without the pod of the last coordinator is one of
// another pod's.
func TestCoordinatorIncompleteRecord(t *testing.T) {
	t.Parallel()
	const script = `
with open(job.memory.file, "w") as file:
    json.dump({"attempt": 7, "running": True}, file)
job.keeper.keep()
`
	assert.Equal(t, []string{"log: attempt 7 ends: nn-worker 0 was replaced", "log: attempt 8 starts in 0 s or later"}, coordinate(t, script, nil))
}

// TestCoordinatorSilence: a replica that gets no answer ends its command so early that it has
// ended when the coordinator counts it as lost and has waited for stop_seconds.
func TestCoordinatorSilence(t *testing.T) {
	t.Parallel()
	for lost, want := range map[int]string{120: "100.0", 60: "40", 30: "15.0", 10: "5.0"} {
		said := coordinate(t, `print(report("nn-worker", 0, "waiting")["silence"])`, map[string]any{"lost_seconds": lost})
		assert.Equal(t, strings.TrimSuffix(want, ".0"), strings.TrimSuffix(said[0], ".0"), "%d s", lost)
	}
}

// TestCoordinatorVisits: a report costs the same for any number of replicas. This counts how
// often the coordinator looks at a replica, not how long it takes.
func TestCoordinatorVisits(t *testing.T) {
	t.Parallel()
	const script = `
import collections

visits = 0

def counted(kind):
    """A collection that counts each look at one of its entries."""
    class Counted(kind):
        def visit(self, name, arguments):
            global visits
            visits += 1
            return getattr(kind, name)(self, *arguments)
        def every(self, found):
            global visits
            for entry in found:
                visits += 1
                yield entry
        def __iter__(self):
            return self.every(kind.__iter__(self))
        def values(self):
            return self.every(kind.values(self))
        def items(self):
            return self.every(kind.items(self))
    for name in ("__getitem__", "__setitem__", "__contains__", "get", "pop", "add", "discard"):
        if hasattr(kind, name):
            setattr(Counted, name, lambda self, *arguments, name=name: self.visit(name, arguments))
    return Counted

kinds = {kind: counted(kind) for kind in (dict, set, collections.OrderedDict)}

def count():
    for name, found in list(vars(job.roster).items()):
        if type(found) in kinds:
            setattr(job.roster, name, kinds[type(found)](found))

def tell(role, replica, attempt, state, **more):
    global visits
    visits = 0
    job.report(dict({
        "role": role, "replica": replica, "run": "1", "pod": f"{role}-{replica}", "revision": "1", "instance": f"{role}-{replica}",
        "attempt": attempt, "state": state, "reason": "", "progress": None, "blocked": "", "done": False,
    }, **more))
    return visits

def most(attempt, state, **more):
    return max(tell(role, replica, attempt, state, **more) for role, replicas in settings.replicas.items() for replica in range(replicas))

job.log = lambda text: None
count()
said = [most(0, "waiting", blocked="NATS does not answer"), most(0, "waiting")]
job.keeper.keep()
count()
said += [most(1, "running"), most(1, "running")]
said += [tell("dataloader", 5, 1, "failed")]
job.keeper.keep()
said += [most(1, "waiting")]
job.keeper.keep()
count()
said += [most(2, "running"), most(2, "finished")]
print(job.status())
print(*said)
`
	visits := map[int]string{}
	for _, replicas := range []int{100, 10_000} {
		said := coordinate(t, script, map[string]any{"replicas": map[string]int{"dataloader": replicas - 1, "nn-worker": 1}})
		assert.Contains(t, said[0], "in attempt 2")
		visits[replicas] = said[1]
	}
	assert.Equal(t, visits[100], visits[10_000])
	assert.NotContains(t, " "+visits[100]+" ", " 0 ", "visits are counted")
}

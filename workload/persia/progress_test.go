package persia

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// coordinated is the coordinator of a job with two replicas, which takes their reports, at
// times that are given.
const coordinated = `
import json, os, sys, types
import coordinator

now = 0
settings = types.SimpleNamespace(
    replicas={"nn-worker": 1, "dataloader": 1}, run="1", revision="1", pod="nn-worker", coordinator="", checkpoints=None,
    older=False, state_directory=sys.argv[1], former_state_directory=None, job="", keep=2, attempts=5, beat_seconds=5, lost_seconds=1e9, end_seconds=1e9, stuck_seconds=60,
    backoff_seconds=0, stop_seconds=20,
)
vars(settings).update(json.loads(sys.argv[2]) or {})
job = coordinator.Coordinator(settings, lambda text: print("log:", text), lambda: now)

def report(role, attempt, state, progress=None, **more):
    order = job.report(dict({
        "role": role, "replica": 0, "run": "1", "pod": role, "revision": "1", "instance": role, "attempt": attempt,
        "state": state, "reason": "", "progress": progress, "blocked": "", "done": False,
    }, **more))
    # A thread of its own does this in a pod.
    job.keeper.keep()
    return order

def all_report(attempt, state):
    for role in settings.replicas:
        report(role, attempt, state)
`

// coordinate runs a script of Python with the coordinator and settings of it, and returns
// the lines that the script prints.
func coordinate(t *testing.T, script string, settings map[string]any, arguments ...string) []string {
	t.Helper()
	text, err := json.Marshal(settings)
	require.NoError(t, err)
	output, err := exec.Command("python3", append([]string{"-B", "-c", coordinated + script, t.TempDir(), string(text)}, arguments...)...).CombinedOutput()
	require.NoError(t, err, "%s", output)
	return strings.Split(strings.TrimSpace(string(output)), "\n")
}

// tellStatus prints the coordinator's status of the job after each report.
const tellStatus = `
job.log = lambda text: None
all_report(0, "waiting")
for now, role, state, progress in json.loads(sys.argv[3]):
    report(role, 1, state, progress)
    print(job.status())
`

// beat is a report of a replica in the first attempt.
type beat struct {
	second      int
	role, state string
	// progress is the last report of the script, if it is not 0.
	progress int
}

func (b beat) MarshalJSON() ([]byte, error) {
	if b.progress == 0 {
		return json.Marshal([]any{b.second, b.role, b.state, nil})
	}
	return json.Marshal([]any{b.second, b.role, b.state, b.progress})
}

// TestProgress: an attempt ends when its script has told of its progress and does so no
// more. Of other scripts, people are told.
func TestProgress(t *testing.T) {
	const (
		runs  = "running attempt 1: 0 of 1 nn-workers and 0 of 1 dataloaders have finished"
		doubt = runs + "; no sign of progress for 60 s or longer"
		ended = "waiting after attempt 1 (no nn-worker has made progress for 60 s): dataloader 0 still runs; nn-worker 0 still runs"
	)
	tests := map[string]struct {
		settings map[string]any
		beats    []beat
		want     []string
	}{
		"a script that goes on": {nil, []beat{
			{1, "nn-worker", "running", 1}, {60, "nn-worker", "running", 2}, {119, "nn-worker", "running", 3}, {179, "dataloader", "running", 0},
		}, []string{runs, runs, runs, runs}},
		"a script that stops": {nil, []beat{
			{1, "nn-worker", "running", 1}, {1, "dataloader", "running", 0}, {61, "nn-worker", "running", 1}, {62, "nn-worker", "running", 1},
		}, []string{runs, runs, runs, ended}},
		"a script that stops before its first step": {nil, []beat{
			{1, "dataloader", "running", 0}, {30, "nn-worker", "running", 0}, {31, "nn-worker", "running", 1}, {92, "dataloader", "running", 0},
		}, []string{runs, runs, runs, ended}},
		"a script that tells nothing": {nil, []beat{
			{1, "nn-worker", "running", 0}, {61, "nn-worker", "running", 0}, {62, "nn-worker", "running", 0}, {1000, "nn-worker", "running", 0},
		}, []string{runs, runs, doubt, doubt}},
		"another time to wait": {map[string]any{"stuck_seconds": 100}, []beat{
			{1, "nn-worker", "running", 1}, {1, "dataloader", "running", 0}, {101, "nn-worker", "running", 1},
		}, []string{runs, runs, runs}},
		"waiting for ever": {map[string]any{"stuck_seconds": 0}, []beat{
			{1, "nn-worker", "running", 1}, {1_000_000, "nn-worker", "running", 1},
		}, []string{runs, runs}},
		"an nn-worker that has finished, and a dataloader that goes on": {nil, []beat{
			{1, "nn-worker", "running", 1}, {1, "dataloader", "running", 0}, {2, "nn-worker", "finished", 1}, {1000, "dataloader", "running", 0},
		}, []string{runs, runs, "running attempt 1: 1 of 1 nn-workers and 0 of 1 dataloaders have finished", "running attempt 1: 1 of 1 nn-workers and 0 of 1 dataloaders have finished; no sign of progress for 60 s or longer"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			beats, err := json.Marshal(test.beats)
			require.NoError(t, err)
			assert.Equal(t, test.want, coordinate(t, tellStatus, test.settings, string(beats)))
		})
	}
}

// TestFlapping checks that a replica that comes and goes costs a growing pause, and in the end
// fails the job, as any other failure does.
func TestFlapping(t *testing.T) {
	t.Parallel()
	const script = `
all_report(0, "waiting")
for attempt in (1, 2, 3):
    all_report(attempt, "running")
    now += 61
    report("nn-worker", attempt, "running")
    all_report(attempt, "waiting")
    print(job.status())
    now += 10 * 2 ** (attempt - 1)
    all_report(attempt, "waiting")
`
	const lost, wait = "dataloader 0 has not been heard of for 60 s", "log: attempt %d ends: " + "dataloader 0 has not been heard of for 60 s"
	said := coordinate(t, script, map[string]any{"lost_seconds": 60, "stuck_seconds": 0, "backoff_seconds": 10, "attempts": 3})
	assert.Equal(t, []string{
		"log: attempt 1 starts from the beginning",
		fmt.Sprintf(wait, 1), "log: attempt 2 starts in 10 s or later", "waiting after attempt 1 (" + lost + "): backing off", "log: attempt 2 starts from the beginning",
		fmt.Sprintf(wait, 2), "log: attempt 3 starts in 20 s or later", "waiting after attempt 2 (" + lost + "): backing off", "log: attempt 3 starts from the beginning",
		fmt.Sprintf(wait, 3), "log: the job has failed: 3 attempts failed without a new checkpoint, the last one because " + lost,
		"failed: 3 attempts failed without a new checkpoint, the last one because " + lost,
	}, said)
}

// TestReplacedAgainAndAgain: a pod that is replaced is no failure. If that soon happens again, the
// next attempt waits longer and longer.
func TestReplacedAgainAndAgain(t *testing.T) {
	t.Parallel()
	const script = `
job.log = lambda text: print(text) if " starts in " in text else None
for pause, length in ((0, 1), (0, 1), (10, 1), (20, 400), (0, 1), (0, 1)):
    now += pause
    attempt = job.attempt + 1
    all_report(job.attempt, "waiting")
    all_report(attempt, "running")
    now += length
    report("dataloader", attempt, "running", leaving=True)
    report("nn-worker", attempt, "waiting")
`
	said := coordinate(t, script, map[string]any{"stuck_seconds": 0, "backoff_seconds": 10, "attempts": 3})
	assert.Equal(t, []string{
		"attempt 2 starts in 0 s or later", "attempt 3 starts in 10 s or later", "attempt 4 starts in 20 s or later",
		"attempt 5 starts in 0 s or later", "attempt 6 starts in 0 s or later", "attempt 7 starts in 10 s or later",
	}, said)
}

// TestCutOff checks that no attempt starts while a replaced replica may still run: it ends its
// command when it notices that the coordinator does not answer.
func TestCutOff(t *testing.T) {
	t.Parallel()
	const running = `
all_report(1, "running")`
	for name, test := range map[string]struct {
		end  string
		want []string
	}{
		"in silence": {running, []string{"waiting", "waiting", "running"}},
		"in silence while its command ends": {running + `
report("dataloader", 1, "failed", ending=True)`, []string{"waiting", "waiting", "running"}},
		"in silence after the order to start": {`
report("dataloader", 0, "waiting")
report("nn-worker", 1, "running")`, []string{"waiting", "waiting", "running"}},
		"with a word": {running + `
report("dataloader", 1, "running", leaving=True)`, []string{"running", "running", "running"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := `
job.log = lambda text: None
all_report(0, "waiting")` + test.end + `
for now in range(1, 82):
    report("dataloader", job.attempt if job.phase == "start" else 0, "running" if job.phase == "start" else "waiting", pod="another", instance="another")
    report("nn-worker", job.attempt, "running" if job.phase == "start" else "waiting")
    report("nn-worker", job.attempt, "running" if job.phase == "start" else "waiting")
    if now in (1, 79, 81):
        print(job.status().split()[0])
`
			assert.Equal(t, test.want, coordinate(t, script, map[string]any{"lost_seconds": 60, "stuck_seconds": 0}))
		})
	}
}

// TestTwoPods: the pod of a lost node may run on, and reach the coordinator. It has to end its command,
// and does not end the attempts of its substitute, whatever it says.
func TestTwoPods(t *testing.T) {
	t.Parallel()
	const script = `
job.log = lambda text: print(text) if " ends: " in text else None
all_report(0, "waiting")
all_report(1, "running")
for now in range(1, 90):
    attempt = job.attempt if job.phase == "start" else 1
    state = "running" if job.phase == "start" else "waiting"
    report("nn-worker", attempt, state)
    report("dataloader", attempt if attempt > 1 else 0, state, pod="another", instance="another", since=2)
    old = report("dataloader", 1, "failed" if now > 30 else "running", since=1)
    if now in (1, 79, 81):
        print(job.status().split()[0], old["order"])
now += 61
report("dataloader", 2, "waiting", since=1)
`
	assert.Equal(t, []string{
		"attempt 1 ends: dataloader 0 was restarted", "waiting stop", "waiting stop", "running stop",
		// The substitute is gone.
		"attempt 2 ends: dataloader 0 was restarted",
	}, coordinate(t, script, map[string]any{"lost_seconds": 60, "stuck_seconds": 0}))
}

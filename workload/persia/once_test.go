package persia

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLaunchEnds: where a replica that ends with success has finished for good, nn-workers and
// dataloaders end with their job, the coordinator after all others and after the completion
// has asked. Servers go on.
func TestLaunchEnds(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=2,dataloader=1,embedding-ps=1", "PERSIA_ONCE=1", "PERSIA_RUN=1")
	server := j.start("embedding-ps-0", serve)
	loader := j.start("dataloader-0", note)
	first := j.start("nn-worker-0", note)
	second := j.start("nn-worker-1", note+`until [[ -e last ]]; do sleep 0.05; done`)
	loader.says("attempt 1: finished")
	first.says("attempt 1: finished")
	j.awaits("dataloader-0.idle")
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "last"), nil, 0o600))

	assert.Zero(t, second.status())
	assert.Zero(t, loader.status())
	server.says("the job is complete: still running")
	assert.Equal(t, "complete in attempt 1", j.becomes("complete"), "the coordinator waits for the completion")
	assert.Equal(t, "complete in attempt 1", j.statusOf("1"))
	assert.Zero(t, first.status())
	assert.NoError(t, server.process.Process.Signal(syscall.Signal(0)), "the server goes on")
}

// TestLaunchEndsFailed: where the pods end with their job, they also end when it has failed for good, the
// coordinator after the completion knows why.
func TestLaunchEndsFailed(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=2,dataloader=1", "PERSIA_ONCE=1", "PERSIA_RUN=1", "PERSIA_ATTEMPTS=1")
	first, loader := j.start("nn-worker-0", serve), j.start("dataloader-0", serve)
	second := j.start("nn-worker-1", `exit 7`)
	assert.Zero(t, second.status())
	assert.Zero(t, loader.status())
	const reason = "failed: 1 attempts failed without a new checkpoint, the last one because nn-worker 1: the command ended with status 7"
	assert.Equal(t, reason, j.becomes("failed"), "the coordinator waits for the completion")
	assert.Equal(t, reason, j.statusOf("1"))
	assert.Zero(t, first.status())
}

// TestLaunchEndIsPassedOn: nn-worker 0 is told to end after the others have left, but before the completion
// knows how the job has ended, however late that asks. Its substitute says so, without a volume too.
func TestLaunchEndIsPassedOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ command, status string }{
		"complete": {note, "complete in attempt 1"},
		"failed":   {"exit 7", "failed: 1 attempts failed without a new checkpoint, the last one because nn-worker 1: the command ended with status 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, "nn-worker=2,dataloader=1,embedding-ps=1", "PERSIA_ONCE=1", "PERSIA_RUN=1", "PERSIA_ATTEMPTS=1", "PERSIA_LOST_SECONDS=5")
			server, loader := j.start("embedding-ps-0", serve), j.start("dataloader-0", note)
			first, second := j.start("nn-worker-0", note, "PERSIA_STATE_DIR="+t.TempDir()), j.start("nn-worker-1", test.command)
			assert.Zero(t, second.status())
			assert.Zero(t, loader.status())
			server.says("the job")
			assert.Equal(t, 143, first.stop(), "Kubernetes does not replace a pod that exits with status 0")
			first = j.start("nn-worker-0", note, "PERSIA_POD_UID=another", "PERSIA_STATE_DIR="+t.TempDir())
			assert.Equal(t, test.status, j.becomes(test.status))
			assert.Equal(t, test.status, j.statusOf("1"))
			assert.Zero(t, first.status())
		})
	}
}

// TestLaunchToldToEnd: a replica that is told to end before its job is complete must not
// count as finished, whatever its command makes of it.
func TestLaunchToldToEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env     []string
		command string
		status  int
	}{
		"waits":                        {[]string{"PERSIA_ONCE=1"}, "", 143},
		"runs":                         {[]string{"PERSIA_ONCE=1"}, `trap "exit 0" TERM; touch trapped; while :; do sleep 0.05; done`, 143},
		"fails":                        {[]string{"PERSIA_ONCE=1"}, `trap "exit 7" TERM; touch trapped; while :; do sleep 0.05; done`, 7},
		"waits, in a StatefulSet":      {nil, "", 0},
		"runs, in a StatefulSet's pod": {nil, `trap "exit 0" TERM; touch trapped; while :; do sleep 0.05; done`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replicas := "nn-worker=1,dataloader=1"
			if test.command != "" {
				replicas = "nn-worker=1,dataloader=0"
			}
			j := newTraining(t, replicas, test.env...)
			nnWorker := j.start("nn-worker-0", test.command)
			if test.command != "" {
				j.awaits("trapped")
			} else {
				nnWorker.says("waiting for attempt 1")
			}
			assert.Equal(t, test.status, nnWorker.stop())
		})
	}
}

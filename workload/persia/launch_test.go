package persia

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLaunchCompletes: each command runs once, with its arguments; servers go on; and
// nothing runs again when pods are replaced.
func TestLaunchCompletes(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=2,dataloader=1,embedding-ps=1")
	j.start("dataloader-0", note)
	server := j.start("embedding-ps-0", serve)
	j.startCommand("nn-worker-1", []string{"bash", "-c", note + `echo "$0: $1" >arguments`, "stand-in", "an argument"})
	first := j.start("nn-worker-0", note+`until [[ -e embedding-ps-0.attempts ]]; do sleep 0.05; done`)
	assert.Equal(t, "complete in attempt 1", j.becomes("complete"))
	assert.Equal(t, []string{"stand-in: an argument"}, j.lines("arguments"))
	server.says("the job is complete: still running")
	j.awaits("nn-worker-0.idle")

	assert.Zero(t, first.stop())
	again := j.start("nn-worker-0", note, "PERSIA_POD_UID=another")
	again.says("the job is complete: idle")
	for _, name := range []string{"nn-worker-0", "nn-worker-1", "dataloader-0", "embedding-ps-0"} {
		assert.Equal(t, []string{"1"}, j.lines(name+".attempts"), name)
	}
}

// TestLaunchRestartsAll: when any replica fails, all start again together from the newest
// complete checkpoint.
func TestLaunchRestartsAll(t *testing.T) {
	t.Parallel()
	const checkpoint = `mkdir -p $PERSIA_CKPT_DIR; cd $PERSIA_CKPT_DIR; mkdir -p {late,broken,sparse,dense}/s0; ` +
		`for i in {late,broken,sparse,dense}/{dense.pt,s0/a.emb} {late,dense}/opt.pt; do echo x >$i; done; echo "num_shards: 1" | tee {late,sparse}/embedding_dump_done >/dev/null; cd - >/dev/null; `
	for _, failing := range []string{"nn-worker-0", "dataloader-0", "embedding-worker-0", "embedding-ps-0"} {
		t.Run(failing, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, everyRole)
			for _, name := range []string{"nn-worker-0", "dataloader-0", "embedding-worker-0", "embedding-ps-0"} {
				work := `exec sleep 600`
				if !strings.HasPrefix(name, "embedding") {
					// Servers take part in the second attempt before it ends.
					work = `[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600; ` + together
				}
				if name == failing {
					work = `[[ $PERSIA_ATTEMPT -gt 1 ]] || { ` + checkpoint + together + `exit 7; }; ` + work
				}
				j.start(name, `echo "from $PERSIA_RESUME_DIR" >>$PERSIA_ROLE.resume; `+note+work)
			}
			assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
			for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
				assert.Equal(t, []string{"1", "2"}, j.lines(role+"-0.attempts"))
				assert.Equal(t, []string{"from ", "from " + filepath.Join(j.dir, "run/attempt-1/late")}, j.lines(role+".resume"), role)
			}
			for _, incomplete := range []string{"broken", "sparse", "dense"} {
				// What no attempt completes any more.
				j.loses(filepath.Join("run/attempt-1", incomplete))
			}
		})
	}
}

// TestLaunchRestartedReplica checks that all replicas start a new attempt after one restarts, in its
// pod or in another one, because a restarted server has lost its embeddings.
func TestLaunchRestartedReplica(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]struct {
		signal syscall.Signal
		status int
		pod    string
	}{
		"a pod is replaced":    {syscall.SIGTERM, 128 + int(syscall.SIGTERM), "another"},
		"a container restarts": {syscall.SIGKILL, -1, "embedding-ps-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, everyRole)
			work := note + `[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`
			j.start("nn-worker-0", work)
			j.start("dataloader-0", work)
			j.start("embedding-worker-0", serve)
			// What a killed launch.py leaves ends by itself.
			server := j.start("embedding-ps-0", note+`exec sleep 20`)
			j.awaits("embedding-ps-0.attempts")
			require.NoError(t, server.process.Process.Signal(restart.signal))
			assert.Equal(t, restart.status, server.status())
			j.start("embedding-ps-0", serve, "PERSIA_POD_UID="+restart.pod)
			assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
		})
	}
}

// TestLaunchRolls: Kubernetes replaces the pods of a changed role one after the other, each
// once the last is ready. The next attempt starts when all are replaced, so a server that
// waits for it must count as ready.
func TestLaunchRolls(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1,embedding-ps=2")
	work := note + `[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`
	j.start("nn-worker-0", work)
	j.start("dataloader-0", work)
	servers := []*replica{j.start("embedding-ps-0", serve), j.start("embedding-ps-1", serve)}
	j.awaits("embedding-ps-0.attempts")
	j.awaits("embedding-ps-1.attempts")
	assert.NoFileExists(t, filepath.Join(j.dir, "embedding-ps-1.idle"), "a server that runs is ready when it takes connections")

	servers[1].stop()
	j.start("embedding-ps-1", serve, "PERSIA_POD_UID=another", "PERSIA_REVISION=2")
	j.becomes("replicas of embedding-ps are being replaced")
	j.awaits("embedding-ps-1.idle")
	servers[0].stop()
	j.start("embedding-ps-0", serve, "PERSIA_POD_UID=another", "PERSIA_REVISION=2")
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
}

// TestLaunchRestartedCoordinator: its successor learns from the others where the job
// is, also where there is no volume to remember.
func TestLaunchRestartedCoordinator(t *testing.T) {
	t.Parallel()
	j := newTraining(t, everyRole, "PERSIA_LOST_SECONDS=5", "PERSIA_STOP_SECONDS=1")
	work := note + `[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`
	first := j.start("nn-worker-0", work)
	j.start("dataloader-0", work)
	j.start("embedding-worker-0", serve)
	j.start("embedding-ps-0", serve)
	j.awaits("embedding-ps-0.attempts")
	j.awaits("dataloader-0.attempts")
	first.stop()
	require.NoError(t, os.RemoveAll(filepath.Join(j.dir, ".persia")))
	j.start("nn-worker-0", work, "PERSIA_POD_UID=another")
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
}

// TestLaunchGivesUp: after a number of failures without a new checkpoint the job has
// failed, and costs nothing more than its nodes. A change gives it another chance.
func TestLaunchGivesUp(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1,embedding-ps=1")
	j.start("nn-worker-0", note+together+`exit 9`)
	j.start("dataloader-0", serve)
	server := j.start("embedding-ps-0", `trap 'echo ended >>ended; exit 0' TERM; `+note+`while :; do sleep 0.05; done`)
	assert.Equal(t, "failed: 3 attempts failed without a new checkpoint, the last one because nn-worker 0: the command ended with status 9", j.becomes("failed:"))
	server.says("the job has failed: idle")
	assert.Len(t, j.lines("ended"), 3)
	assert.Equal(t, []string{"1", "2", "3"}, j.lines("dataloader-0.attempts"))

	server.stop()
	j.start("embedding-ps-0", serve, "PERSIA_REVISION=2")
	j.becomes("attempt 4")
}

// TestLaunchNNWorkersEndEarly: PERSIA ends the nn-workers' loop without an error when data
// stays away.
func TestLaunchNNWorkersEndEarly(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_ATTEMPTS=1")
	j.start("nn-worker-0", `exit 0`)
	j.start("dataloader-0", `exec sleep 600`)
	assert.Contains(t, j.becomes("failed:"), "the nn-workers ended before the dataloaders had sent all data")
}

// TestLaunchFinishedReplicaIsReplaced checks that the loss of a replica that has finished starts no
// new attempt.
func TestLaunchFinishedReplicaIsReplaced(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1")
	j.start("nn-worker-0", note+`until [[ -e go ]]; do sleep 0.05; done`)
	loader := j.start("dataloader-0", note)
	j.becomes("1 of 1 dataloaders have finished")
	loader.stop()
	require.NoError(t, os.Remove(filepath.Join(j.dir, "dataloader-0.idle")))
	j.start("dataloader-0", note, "PERSIA_POD_UID=another")
	j.awaits("dataloader-0.idle")
	require.Never(t, func() bool { return strings.HasPrefix(j.status(), "waiting") }, time.Second, 100*time.Millisecond, "the substitute has reported")
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "go"), nil, 0o600))
	assert.Equal(t, "complete in attempt 1", j.becomes("complete"))
	assert.Equal(t, []string{"1"}, j.lines("dataloader-0.attempts"))
}

// TestLaunchNextRun: while a job is changed to its next run, replicas of both report to
// the coordinators of both. No coordinator mistakes the end of the first run for the end of the
// next.
func TestLaunchNextRun(t *testing.T) {
	t.Parallel()
	first := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_RUN=first")
	nnWorker := first.start("nn-worker-0", "echo first >>trained")
	loader := first.start("dataloader-0", "true")
	first.becomes("complete in attempt 1")
	loader.says("the job is complete")
	assert.Equal(t, "complete in attempt 1", first.statusOf("first"))
	assert.Equal(t, "waiting: the coordinator is of another run", first.statusOf("next"))

	next := newTraining(t, first.replicas, "PERSIA_RUN=next")
	next.coordinator = first.coordinator
	early := next.start("dataloader-0", "true")
	early.says("is of another run")
	early.stop()
	nnWorker.stop()
	next.start("nn-worker-0", "echo next >>trained")
	loader.says("is of another run")
	assert.Contains(t, next.status(), "dataloader 0 is not there")
	loader.stop()
	next.start("dataloader-0", "true")
	next.becomes("complete in attempt 1")
	assert.Equal(t, []string{"next"}, next.lines("trained"))
}

// TestLaunchEvicted: a replica whose pod is evicted takes the pod's time to save, not the shorter one
// that replicas have between two attempts. Its successor takes part in the next attempt.
func TestLaunchEvicted(t *testing.T) {
	t.Parallel()
	const saves = note + `[[ $PERSIA_ATTEMPT -gt 1 ]] && exit 0; trap 'sleep 1; echo saved >>saved; exit 0' TERM; touch ready-$PERSIA_ROLE-$REPLICA_INDEX; while :; do sleep 0.05; done`
	for _, evicted := range []string{"nn-worker-0", "dataloader-0"} {
		t.Run(evicted, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, "nn-worker=2,dataloader=1", "PERSIA_STOP_SECONDS=0.1")
			replicas := map[string]*replica{}
			for _, name := range []string{"nn-worker-0", "nn-worker-1", "dataloader-0"} {
				command := note + `[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`
				if name == evicted {
					command = saves
				}
				replicas[name] = j.start(name, command)
			}
			j.awaits("ready-" + evicted)
			assert.Zero(t, replicas[evicted].stop())
			assert.Equal(t, []string{"saved"}, j.lines("saved"))
			j.start(evicted, saves, "PERSIA_POD_UID=another")
			assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
		})
	}
}

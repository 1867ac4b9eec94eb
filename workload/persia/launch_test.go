package persia

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// training is a job of processes of this machine: launch.py at work in each role, with
// scripts of bash instead of PERSIA.
type training struct {
	t *testing.T
	// dir is the volume of all replicas.
	dir         string
	coordinator string
	replicas    string
	env         []string
}

// replica is one of them.
type replica struct {
	t       *testing.T
	process *exec.Cmd
	log     string
	ended   chan struct{}
}

// patience is how long a test waits for something to happen.
const patience = time.Minute

// newTraining is a job of replicas, like nn-worker=2,dataloader=1.
func newTraining(t *testing.T, replicas string, env ...string) *training {
	t.Helper()
	return &training{
		t: t, dir: t.TempDir(), coordinator: freeAddress(t), replicas: replicas,
		env: append([]string{
			"PERSIA_BEAT_SECONDS=0.1", "PERSIA_LOST_SECONDS=30", "PERSIA_END_SECONDS=0.5", "PERSIA_NATS_SECONDS=0.5",
			"PERSIA_STOP_SECONDS=5", "PERSIA_BACKOFF_SECONDS=0.1", "PERSIA_REPORT_SECONDS=0.1", "PERSIA_ATTEMPTS=3",
		}, env...),
	}
}

// lastPort is below the ports that Linux gives to outgoing connections, one of which
// could otherwise take an address before its server listens.
var lastPort atomic.Int32

func init() { lastPort.Store(20_000 + rand.Int32N(8_000)) }

// freeAddress returns an address that nobody listens on, a different one each time.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1_000 {
		address := fmt.Sprintf("127.0.0.1:%d", lastPort.Add(1))
		if listener, err := net.Listen("tcp", address); err == nil {
			require.NoError(t, listener.Close())
			return address
		}
	}
	require.Fail(t, "all ports are taken")
	return ""
}

// start starts a replica, like nn-worker-0, in a pod of that name.
func (j *training) start(name, standIn string, env ...string) *replica {
	j.t.Helper()
	return j.startCommand(name, []string{"bash", "-c", standIn, "stand-in"}, env...)
}

func (j *training) startCommand(name string, command []string, env ...string) *replica {
	j.t.Helper()
	script, err := filepath.Abs(launchFile)
	require.NoError(j.t, err)
	at := strings.LastIndex(name, "-")
	r := &replica{t: j.t, log: filepath.Join(j.t.TempDir(), "log"), ended: make(chan struct{})}
	r.process = exec.Command("python3", append([]string{"-B", script}, command...)...)
	r.process.Dir = j.dir
	r.process.Env = append(append(append(os.Environ(),
		"PERSIA_ROLE="+name[:at], "REPLICA_INDEX="+name[at+1:], "PERSIA_REPLICAS="+j.replicas,
		"PERSIA_COORDINATOR="+j.coordinator, "PERSIA_POD_UID="+name, "PERSIA_REVISION=1",
		"PERSIA_STATE_DIR="+filepath.Join(j.dir, ".persia"), "PERSIA_IDLE_FILE="+filepath.Join(j.dir, name+".idle"),
		"PERSIA_CKPT_ROOT="+filepath.Join(j.dir, "run")), j.env...), env...)
	log, err := os.Create(r.log)
	require.NoError(j.t, err)
	defer func() { _ = log.Close() }()
	r.process.Stdout, r.process.Stderr = log, log
	require.NoError(j.t, r.process.Start())
	go func() {
		_ = r.process.Wait()
		close(r.ended)
	}()
	j.t.Cleanup(func() {
		// What it has started ends with it only if it is asked.
		_ = r.process.Process.Signal(syscall.SIGTERM)
		r.status()
		if j.t.Failed() {
			text, _ := os.ReadFile(r.log)
			j.t.Logf("%s:\n%s", name, text)
		}
	})
	return r
}

// status waits for the end, and returns the exit status.
func (r *replica) status() int {
	r.t.Helper()
	select {
	case <-r.ended:
		return r.process.ProcessState.ExitCode()
	case <-time.After(patience):
		_ = r.process.Process.Kill()
		r.t.Error("launch.py has not ended")
		return -1
	}
}

// says waits until launch.py says something.
func (r *replica) says(text string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		log, err := os.ReadFile(r.log)
		return err == nil && strings.Contains(string(log), text)
	}, patience, 20*time.Millisecond, "%q", text)
}

// stop sends what Kubernetes sends to a pod that is to go.
func (r *replica) stop() int {
	r.t.Helper()
	require.NoError(r.t, r.process.Process.Signal(syscall.SIGTERM))
	return r.status()
}

// status is what the coordinator says of the job, or "" without one.
func (j *training) status() string { return j.statusOf("") }

// statusOf is status for those who ask about a certain run.
func (j *training) statusOf(run string) string {
	answer, err := http.Get("http://" + j.coordinator + "/status?run=" + run)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(answer.Body)
	return strings.TrimSpace(string(text))
}

// becomes waits until the coordinator says something of the job, and returns it.
func (j *training) becomes(text string) string {
	j.t.Helper()
	var last string
	require.Eventually(j.t, func() bool {
		last = j.status()
		return strings.Contains(last, text)
	}, patience, 20*time.Millisecond, "%q", text)
	return last
}

// lines are those of a file of the volume.
func (j *training) lines(name string) []string {
	j.t.Helper()
	text, err := os.ReadFile(filepath.Join(j.dir, name))
	require.NoError(j.t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func (j *training) awaits(name string) {
	j.t.Helper()
	require.Eventually(j.t, func() bool {
		_, err := os.Stat(filepath.Join(j.dir, name))
		return err == nil
	}, patience, 20*time.Millisecond, "%s", name)
}

const (
	// everyRole is a job with one replica of each role.
	everyRole = "nn-worker=1,dataloader=1,embedding-worker=1,embedding-ps=1"
	// note writes down the attempt.
	note = `echo "$PERSIA_ATTEMPT" >>$PERSIA_ROLE-$REPLICA_INDEX.attempts; `
	// together waits until all have noted the attempt.
	together = `until [[ $(grep -lx $PERSIA_ATTEMPT *.attempts | wc -l) -eq $(tr , '\n' <<<$PERSIA_REPLICAS | wc -l) ]]; do sleep 0.05; done; `
	// serve is what a server does: it never ends.
	serve = note + `exec sleep 600`
)

// TestLaunchCompletes: each command runs once, with its arguments; servers go on; and
// nothing runs again when pods are replaced.
func TestLaunchCompletes(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=2,dataloader=1,embedding-ps=1")
	j.start("dataloader-0", note)
	server := j.start("embedding-ps-0", serve)
	j.startCommand("nn-worker-1", []string{"bash", "-c", note + `echo "$0: $1" >arguments`, "stand-in", "an argument"})
	first := j.start("nn-worker-0", note)
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

// TestLaunchRestartsAll: whoever fails, all begin anew together, from the newest
// complete checkpoint.
func TestLaunchRestartsAll(t *testing.T) {
	t.Parallel()
	const checkpoint = `mkdir -p $PERSIA_CKPT_DIR/late $PERSIA_CKPT_DIR/broken/s0; touch $PERSIA_CKPT_DIR/late/{embedding_dump_done,opt.pt}; `
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
			assert.NoDirExists(t, filepath.Join(j.dir, "run/attempt-1/broken"), "what no attempt completes any more")
		})
	}
}

// TestLaunchRestartedReplica: a server that was started again knows nothing of the
// training, so all begin anew.
func TestLaunchRestartedReplica(t *testing.T) {
	t.Parallel()
	j := newTraining(t, everyRole)
	work := note + `[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`
	j.start("nn-worker-0", work)
	j.start("dataloader-0", work)
	j.start("embedding-worker-0", serve)
	server := j.start("embedding-ps-0", serve)
	j.awaits("embedding-ps-0.attempts")
	assert.Equal(t, 128+int(syscall.SIGTERM), server.stop())
	j.start("embedding-ps-0", serve, "PERSIA_POD_UID=another")
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
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
	j := newTraining(t, everyRole)
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
	server := j.start("embedding-ps-0", note+`trap 'echo ended >>ended; exit 0' TERM; while :; do sleep 0.05; done`)
	assert.Equal(t, "failed: 3 attempts failed without a new checkpoint, the last one because nn-worker 0: the command ended with status 9", j.becomes("failed:"))
	server.says("the job has failed: idle")
	assert.Len(t, j.lines("ended"), 3)
	assert.Equal(t, []string{"1", "2", "3"}, j.lines("dataloader-0.attempts"))

	server.stop()
	j.start("embedding-ps-0", serve, "PERSIA_REVISION=2")
	j.becomes("attempt 4")
}

// TestLaunchTrainersEndEarly: PERSIA ends the trainers' loop without an error when data
// stays away.
func TestLaunchTrainersEndEarly(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_ATTEMPTS=1")
	j.start("nn-worker-0", `exit 0`)
	j.start("dataloader-0", `exec sleep 600`)
	assert.Contains(t, j.becomes("failed:"), "the trainers ended before the data loaders had sent all data")
}

// TestLaunchFinishedReplicaIsReplaced: its part is done, so nothing begins anew.
func TestLaunchFinishedReplicaIsReplaced(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1")
	j.start("nn-worker-0", note+`until [[ -e go ]]; do sleep 0.05; done`)
	loader := j.start("dataloader-0", note)
	j.becomes("1 of 1 data loaders have finished")
	loader.stop()
	j.start("dataloader-0", note, "PERSIA_POD_UID=another")
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "go"), nil, 0o600))
	assert.Equal(t, "complete in attempt 1", j.becomes("complete"))
	assert.Equal(t, []string{"1"}, j.lines("dataloader-0.attempts"))
}

// TestLaunchNextRun: while a job is changed to its next run, replicas of both report to
// the coordinators of both. None takes the end of the first run for that of the next.
func TestLaunchNextRun(t *testing.T) {
	t.Parallel()
	first := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_RUN=first")
	trainer := first.start("nn-worker-0", "echo first >>trained")
	loader := first.start("dataloader-0", "true")
	first.becomes("complete in attempt 1")
	loader.says("the job is complete")
	assert.Equal(t, "complete in attempt 1", first.statusOf("first"))
	assert.Equal(t, "waiting: the coordinator is of run first", first.statusOf("next"))

	next := newTraining(t, first.replicas, "PERSIA_RUN=next")
	next.coordinator = first.coordinator
	early := next.start("dataloader-0", "true")
	early.says("is of another run")
	early.stop()
	trainer.stop()
	next.start("nn-worker-0", "echo next >>trained")
	loader.says("is of another run")
	assert.Contains(t, next.status(), "dataloader 0 is not there")
	loader.stop()
	next.start("dataloader-0", "true")
	next.becomes("complete in attempt 1")
	assert.Equal(t, []string{"next"}, next.lines("trained"))
}

// TestLaunchWithoutNATS: a role whose connection is gone for long is deaf for good, and
// no attempt starts before NATS is back.
func TestLaunchWithoutNATS(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_NATS_URL=nats://"+address)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	work := fmt.Sprintf(note+`exec 3<>/dev/tcp/%s/%s; touch connected-$PERSIA_ATTEMPT; [[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`, host, port)
	trainer := j.start("nn-worker-0", work)
	// One that has finished its part takes part in the next attempt all the same.
	j.start("dataloader-0", note)
	j.becomes("NATS does not answer")
	outage := listen(t, address)
	j.awaits("connected-1")
	trainer.says("attempt 1: connected to NATS")
	j.becomes("1 of 1 data loaders have finished")
	outage()
	trainer.says("no connection to NATS for 0.5 s")
	j.becomes("dataloader 0: NATS does not answer")
	listen(t, address)
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
}

// listen takes connections until the returned function closes all of them.
func listen(t *testing.T, address string) (outage func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	connections := make(chan net.Conn, 10_000)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				close(connections)
				return
			}
			connections <- connection
		}
	}()
	closeAll := func() {
		_ = listener.Close()
		for connection := range connections {
			_ = connection.Close()
		}
	}
	t.Cleanup(closeAll)
	return closeAll
}

// TestLaunchChecks: what a role would find out by itself late or never.
func TestLaunchChecks(t *testing.T) {
	t.Parallel()
	python := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(python, []byte("#!/bin/sh\necho $GPUS_SEEN\n"), 0o700))
	for name, test := range map[string]struct {
		env  []string
		says string
	}{
		"a configuration that is not there": {[]string{"PERSIA_GLOBAL_CONFIG=/none/global_config.yml"}, "PERSIA_GLOBAL_CONFIG names /none/global_config.yml, which is not there"},
		"a script that is not there":        {[]string{"PERSIA_NN_WORKER_ENTRY=/none/train.py"}, "PERSIA_NN_WORKER_ENTRY names /none/train.py, which is not there"},
		"no GPU":                            {[]string{"PERSIA_GPUS=1", "PERSIA_PYTHON=" + python, "GPUS_SEEN=0"}, "PyTorch sees 0 GPUs and the replica has asked for 1"},
		"too few GPUs":                      {[]string{"PERSIA_GPUS=8", "PERSIA_PYTHON=" + python, "GPUS_SEEN=7"}, "PyTorch sees 7 GPUs and the replica has asked for 8"},
		"all GPUs":                          {[]string{"PERSIA_GPUS=8", "PERSIA_PYTHON=" + python, "GPUS_SEEN=8"}, "complete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, "nn-worker=1,dataloader=0", "PERSIA_ATTEMPTS=1")
			j.start("nn-worker-0", note, test.env...)
			assert.Contains(t, j.becomes(test.says), test.says)
		})
	}
}

// TestLaunchWithoutItsCommand: an image that has no PERSIA.
func TestLaunchWithoutItsCommand(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=0", "PERSIA_ATTEMPTS=1")
	j.startCommand("nn-worker-0", []string{"/none/persia-launcher"})
	assert.Contains(t, j.becomes("failed:"), "/none/persia-launcher: No such file or directory")
}

// TestLaunchFindsTheDriver: GKE sets no variable for it, and images drop the CUDA base
// image's.
func TestLaunchFindsTheDriver(t *testing.T) {
	t.Parallel()
	driver := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(driver, "lib64"), 0o700))
	j := newTraining(t, "nn-worker=1,dataloader=0", "PERSIA_DRIVER_DIR="+driver, "LD_LIBRARY_PATH=/opt/conda/lib")
	j.start("nn-worker-0", `echo "$LD_LIBRARY_PATH $NCCL_ASYNC_ERROR_HANDLING" >seen; [[ $PATH != *`+driver+`* ]]`)
	j.becomes("complete")
	assert.Equal(t, []string{"/opt/conda/lib:" + driver + "/lib64 1"}, j.lines("seen"))
}

// TestLaunchTrustsNATS: the variable that PERSIA's client heeds is Python's too, which
// would otherwise trust nobody else.
func TestLaunchTrustsNATS(t *testing.T) {
	t.Parallel()
	roots := filepath.Join(t.TempDir(), "roots.pem")
	require.NoError(t, os.WriteFile(roots, []byte("one\ntwo"), 0o600))
	j := newTraining(t, "nn-worker=1,dataloader=0", "SSL_CERT_FILE="+roots, "PERSIA_NATS_AUTHORITY=nats\n")
	j.start("nn-worker-0", `cp "$SSL_CERT_FILE" seen`)
	j.becomes("complete")
	assert.Equal(t, []string{"one", "two", "nats"}, j.lines("seen"))
}

// TestLaunchKeepsCheckpoints: the newest ones, and what a script keeps elsewhere.
func TestLaunchKeepsCheckpoints(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=0")
	for i, name := range []string{"attempt-1/a", "attempt-1/b", "attempt-12/a", "attempt-2/c"} {
		dir := filepath.Join(j.dir, "run", name)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		for _, mark := range []string{"embedding_dump_done", "opt.pt"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, mark), nil, 0o600))
			require.NoError(t, os.Chtimes(filepath.Join(dir, mark), time.Now(), time.Now().Add(time.Duration(i)*time.Second)))
		}
	}
	j.start("nn-worker-0", `echo "$PERSIA_CKPT_DIR" "$PERSIA_RESUME_DIR" >seen`)
	j.becomes("complete in attempt 13")
	run := filepath.Join(j.dir, "run")
	assert.Equal(t, []string{run + "/attempt-13 " + run + "/attempt-12/a"}, j.lines("seen"), "attempts are numbers, not words")
	left, err := filepath.Glob(run + "/*/*")
	require.NoError(t, err)
	assert.Equal(t, []string{run + "/attempt-12/a", run + "/attempt-2/c"}, left)
}

// TestLaunchStops: SIGTERM reaches all that the command has started, which gets the
// pod's time, also when a launcher is gone at once.
func TestLaunchStops(t *testing.T) {
	t.Parallel()
	const saves = `(trap 'sleep 0.5; echo saved >>saved; exit 0' TERM; touch ready; while :; do sleep 0.05; done) & `
	for name, test := range map[string]struct {
		standIn string
		status  int
	}{
		"a command that saves and ends with success": {`trap 'sleep 0.2; echo saved >>saved; exit 0' TERM; touch ready; while :; do sleep 0.05; done`, 0},
		"a launcher that knows no signals":           {saves + `wait`, 143},
		"a launcher that ends quietly":               {saves + `trap 'exit 0' TERM; wait`, 0},
		"a training in a session of its own":         {`setsid bash -c "trap 'echo saved >>saved; exit 0' TERM; touch ready; while :; do sleep 0.05; done" & wait`, 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, "nn-worker=1,dataloader=0")
			r := j.start("nn-worker-0", test.standIn)
			j.awaits("ready")
			assert.Equal(t, test.status, r.stop())
			assert.Equal(t, []string{"saved"}, j.lines("saved"))
			assert.NoFileExists(t, filepath.Join(j.dir, "nn-worker-0.idle"))
		})
	}
}

// TestLaunchPushesMetrics: what the script knows of each replica, again and again.
func TestLaunchPushesMetrics(t *testing.T) {
	t.Parallel()
	pushed := make(chan string, 1000)
	gateway := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		pushed <- r.Method + " " + r.URL.Path + "\n" + string(body)
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = gateway.Serve(listener) }()
	t.Cleanup(func() { _ = gateway.Close() })
	j := newTraining(t, "nn-worker=1,dataloader=0", "PERSIA_METRICS_GATEWAY_ADDR="+listener.Addr().String(), "PERSIA_REPLICA_METRICS=/metrics/job/criteo")
	j.start("nn-worker-0", `sleep 1`)
	for _, want := range []string{"attempt 1\n alive 1\n finished 0\n", "attempt 1\n alive 0\n finished 1\n"} {
		want = "PUT /metrics/job/criteo\n" + strings.NewReplacer(
			"attempt ", "# TYPE persia_replica_attempt gauge\npersia_replica_attempt ",
			" alive ", "# TYPE persia_replica_alive gauge\npersia_replica_alive ",
			" finished ", "# TYPE persia_replica_finished gauge\npersia_replica_finished ").Replace(want)
		require.Eventually(t, func() bool { return <-pushed == want }, patience, time.Millisecond, want)
	}
}

// TestLaunchWithoutGateway: one that is away harms nobody, and is told of once.
func TestLaunchWithoutGateway(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	j := newTraining(t, "nn-worker=1,dataloader=0", "PERSIA_METRICS_GATEWAY_ADDR="+address, "PERSIA_REPLICA_METRICS=/metrics/job/criteo")
	r := j.start("nn-worker-0", `sleep 1`)
	j.becomes("complete")
	log, err := os.ReadFile(r.log)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(log), "the metrics gateway at "+address+" cannot be told"))
}

func TestLaunchMisused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments []string
		says      string
	}{
		"without a command":     {nil, "usage: launch.py COMMAND"},
		"without the job's pod": {[]string{"true"}, "PERSIA_ROLE is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command("python3", append([]string{"-B", launchFile}, test.arguments...)...)
			command.Env = []string{"PATH=" + os.Getenv("PATH")}
			output, err := command.CombinedOutput()
			require.Error(t, err)
			assert.Equal(t, 2, command.ProcessState.ExitCode())
			assert.Contains(t, string(output), test.says)
		})
	}
}

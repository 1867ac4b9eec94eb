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

	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

const (
	// everyRole is a job with one replica of each role.
	everyRole = "nn-worker=1,dataloader=1,embedding-worker=1,embedding-ps=1"
	// note writes down the attempt.
	note = `echo "$PERSIA_ATTEMPT" >>$PERSIA_ROLE-$REPLICA_INDEX.attempts; `
	// together waits until all have noted the attempt.
	together = `until [[ $(grep -lx $PERSIA_ATTEMPT *.attempts | wc -l) -eq $(tr , '\n' <<<$PERSIA_REPLICAS | wc -l) ]]; do sleep 0.05; done; `
	// token is the secret that all replicas share.
	token = "of the test"
	// serve makes a stand-in run forever, like a server.
	serve = note + `exec sleep 600`
)

// training is a job of processes of this machine: launch.py at work in each role, with
// scripts of bash instead of PERSIA.
type training struct {
	t testing.TB
	// dir is the volume of all replicas.
	dir         string
	coordinator string
	replicas    string
	env         []string
}

// replica is one of them.
type replica struct {
	t       testing.TB
	process *exec.Cmd
	log     string
	ended   chan struct{}
}

// patience is how long a test waits for something to happen.
const patience = time.Minute

// newTraining returns a job of replicas, like nn-worker=2,dataloader=1.
func newTraining(t testing.TB, replicas string, env ...string) *training {
	t.Helper()
	testkit.Processes(t)
	return &training{
		t: t, dir: t.TempDir(), coordinator: freeAddress(t), replicas: replicas,
		env: append([]string{
			"PERSIA_BEAT_SECONDS=0.1", "PERSIA_LOST_SECONDS=30", "PERSIA_END_SECONDS=5", "PERSIA_NATS_SECONDS=0.5",
			"PERSIA_STOP_SECONDS=5", "PERSIA_BACKOFF_SECONDS=0.1", "PERSIA_REPORT_SECONDS=0.1", "PERSIA_ATTEMPTS=3",
		}, env...),
	}
}

// lastPort is below the ports that Linux gives to outgoing connections. Such a connection
// could take an address before its server listens.
var lastPort atomic.Int32

func init() { lastPort.Store(20_000 + rand.Int32N(8_000)) }

// freeAddress returns an address without a listener, a different one each time.
func freeAddress(t testing.TB) string {
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
		"PERSIA_COORDINATOR="+j.coordinator, "PERSIA_TOKEN="+token, "PERSIA_POD_UID="+name, "PERSIA_REVISION=1",
		"PERSIA_STATE_DIR="+filepath.Join(j.dir, ".persia"), "PERSIA_IDLE_FILE="+filepath.Join(j.dir, name+".idle"),
		"PERSIA_PROGRESS_FILE="+filepath.Join(j.dir, name+".progress"),
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

// status returns the coordinator's status of the job, or "" without a coordinator.
func (j *training) status() string { return j.statusOf("") }

// statusOf is status for the completion of a run.
func (j *training) statusOf(run string) string {
	request, err := http.NewRequest(http.MethodGet, "http://"+j.coordinator+"/status?run="+run, nil)
	require.NoError(j.t, err)
	if run != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(request)
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

// lines returns the lines of a file on the volume.
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

// loses waits until something is removed, which happens beside the training.
func (j *training) loses(name string) {
	j.t.Helper()
	require.Eventually(j.t, func() bool {
		_, err := os.Stat(filepath.Join(j.dir, name))
		return os.IsNotExist(err)
	}, patience, 20*time.Millisecond, "%s", name)
}

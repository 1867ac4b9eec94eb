package persia

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/answer"
	"persia/internal/testkit"
)

// These tests show what needs processes. python_test has all that a job does, with a clock that the tests turn.

const (
	// note writes down the attempt.
	note = `echo "$PERSIA_ATTEMPT" >>$PERSIA_ROLE-$REPLICA_INDEX.attempts; `
	// serve makes a stand-in run forever, like a server.
	serve = note + `exec sleep 600`
	// saves is a command that writes a file when it is told to end.
	saves = `trap 'sleep 0.5; echo saved >>saved; exit 0' TERM; touch ready; while :; do sleep 0.05; done`
	// token is the secret that all replicas share.
	token = "of the test"
	// quickly runs launch.py with times that it would refuse.
	quickly = `
import sys
sys.path.insert(0, sys.argv.pop(1))
import launch, os, settings, speed
if "THROUGH" in os.environ:
    with open(os.environ["BEHIND"], "w") as file:
        file.write(speed.take())
    speed.take = lambda: os.environ["THROUGH"]
if "GROUP" in os.environ:
    open(os.environ["GROUP"], "w").write(str(os.getpid()))
speed.__file__ = os.environ.get("MEASURES") or speed.__file__
number = settings.number
settings.number = lambda *arguments, kind=float: float(arguments[0].get(*arguments[1:3])) if kind is float else number(*arguments, kind=kind)
sys.exit(launch.main(sys.argv[1:]))
`
	// patience is how long a test waits for something to happen.
	patience = time.Minute
)

// training is a job of local processes: launch.py in each role, with scripts of bash instead of PERSIA.
type training struct {
	t *testing.T
	// dir is the volume of all replicas.
	dir         string
	coordinator string
	env         []string
}

// newTraining returns a job of replicas, like nn-worker=2,dataloader=1.
func newTraining(t *testing.T, replicas string, env ...string) *training {
	t.Helper()
	testkit.Processes(t)
	t.Parallel()
	return newTrainingAlone(t, replicas, env...)
}

func newTrainingAlone(t *testing.T, replicas string, env ...string) *training {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	return &training{t, dir, address, append([]string{
		"PERSIA_REPLICAS=" + replicas, "PERSIA_COORDINATOR=" + address, "PERSIA_TOKEN=" + token, "PERSIA_RUN=1",
		"PERSIA_STATE_DIR=" + filepath.Join(dir, ".persia"), "PERSIA_CKPT_ROOT=" + filepath.Join(dir, "run"),
		"PERSIA_BEAT_SECONDS=0.1", "PERSIA_LOST_SECONDS=30", "PERSIA_BACKOFF_SECONDS=0.1",
	}, env...)}
}

// lastPort is below the ports of outgoing connections, which could take an address before its server listens.
var lastPort atomic.Int32

func init() { lastPort.Store(20_000 + rand.Int32N(8_000)) }

// freeAddress returns an address without a listener, a different one each time.
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

// program is a process with what it says.
type program struct {
	t       *testing.T
	process *exec.Cmd
	log     string
	ended   chan struct{}
}

// begin starts a process, which ends with the test.
func begin(t *testing.T, process *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, process: process, log: filepath.Join(t.TempDir(), "log"), ended: make(chan struct{})}
	log := testkit.Must(os.Create(p.log))(t)
	defer func() { _ = log.Close() }()
	process.Stdout, process.Stderr = log, log
	require.NoError(t, process.Start())
	go func() {
		_ = process.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		// What it has started ends with it only if it is asked.
		_ = process.Process.Signal(syscall.SIGTERM)
		p.status()
		if t.Failed() {
			t.Logf("%s:\n%s", process.Args, p.text())
		}
	})
	return p
}

func (p *program) text() string { return testkit.Read(p.t, p.log) }

// status waits for the end, and returns the exit status.
func (p *program) status() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.process.ProcessState.ExitCode()
	case <-time.After(patience):
		_ = p.process.Process.Kill()
		p.t.Errorf("%s has not ended", p.process.Args)
		return -1
	}
}

// says waits until the process says something.
func (p *program) says(text string) {
	p.t.Helper()
	eventually(p.t, text, func() bool { return strings.Contains(p.text(), text) })
}

// stop sends what Kubernetes sends to a pod that is to go.
func (p *program) stop() int {
	p.t.Helper()
	require.NoError(p.t, p.process.Process.Signal(syscall.SIGTERM))
	return p.status()
}

func eventually(t *testing.T, what string, happens func() bool) {
	t.Helper()
	require.Eventually(t, happens, patience, 20*time.Millisecond, "%q", what)
}

// start starts a replica, like nn-worker-0, in a pod of that name, with a script of bash or a command as its command.
func (j *training) start(name, script string, env ...string) *program {
	j.t.Helper()
	return j.startCommand(name, []string{"bash", "-c", script, "stand-in", "an argument"}, env...)
}

func (j *training) startCommand(name string, command []string, env ...string) *program {
	j.t.Helper()
	scripts := testkit.Must(filepath.Abs("."))(j.t)
	at := strings.LastIndex(name, "-")
	process := exec.Command("python3", append([]string{"-B", "-c", quickly, scripts}, command...)...)
	process.Dir = j.dir
	process.Env = append(append(append(os.Environ(), "PERSIA_ROLE="+name[:at], "REPLICA_INDEX="+name[at+1:], "PERSIA_POD_UID="+name,
		"PERSIA_IDLE_FILE="+filepath.Join(j.dir, name+".idle")), j.env...), env...)
	return begin(j.t, process)
}

// becomes waits until the coordinator says something of the job, and returns it.
func (j *training) becomes(text string) (last string) {
	j.t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	eventually(j.t, text, func() bool {
		got, err := client.Get("http://" + j.coordinator + "/answer")
		if err != nil {
			return false
		}
		defer func() { _ = got.Body.Close() }()
		said, _ := io.ReadAll(got.Body)
		document, err := answer.Read(string(said))
		last = document.String()
		return err == nil && strings.Contains(last, text)
	})
	return last
}

// lines returns the lines of a file on the volume, once it is there.
func (j *training) lines(name string) []string {
	j.t.Helper()
	var text []byte
	eventually(j.t, name, func() (there bool) {
		var err error
		text, err = os.ReadFile(filepath.Join(j.dir, name))
		return err == nil && len(text) > 0
	})
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func (j *training) write(name, text string) {
	j.t.Helper()
	file := filepath.Join(j.dir, name)
	require.NoError(j.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(j.t, os.WriteFile(file, []byte(text), 0o700))
}

// TestLaunch: when a server fails, all resume from the newest complete checkpoint. A complete job runs nothing again.
func TestLaunch(t *testing.T) {
	j := newTraining(t, "nn-worker=1,dataloader=1,embedding-worker=1,embedding-ps=1", "PERSIA_STOP_SECONDS=5")
	for _, file := range []string{"s0/a.emb", "dense.pt", "embedding_dump_done", "opt.pt"} {
		j.write("checkpoint/"+file, "num_shards: 1\n")
	}
	const resumed = `echo "$1 $PERSIA_RESUME_DIR $NCCL_ASYNC_ERROR_HANDLING$PERSIA_TOKEN" >>$PERSIA_ROLE.resumed; `
	first := j.start("nn-worker-0", resumed+note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600; until [[ -e go ]]; do sleep 0.05; done`)
	j.start("dataloader-0", resumed+note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`)
	j.start("embedding-worker-0", resumed+serve)
	server := j.start("embedding-ps-0", resumed+note+`[[ $PERSIA_ATTEMPT -gt 1 ]] && exec sleep 600
		until [[ $(cat *.attempts | wc -l) -eq 4 ]]; do sleep 0.05; done
		mkdir -p $PERSIA_CKPT_DIR/half; touch $PERSIA_CKPT_DIR/half/dense.pt; mv checkpoint $PERSIA_CKPT_DIR/whole; exit 7`)
	j.becomes("running attempt 2")
	server.says("attempt 1: failed: the command ended with status 7")
	for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
		eventually(t, role+" resumes", func() bool { return len(j.lines(role+".resumed")) == 2 })
		assert.Equal(t, []string{"an argument  1", "an argument " + filepath.Join(j.dir, "run/attempt-1/whole") + " 1"}, j.lines(role+".resumed"))
	}
	eventually(t, "the half checkpoint is removed", func() bool {
		_, err := os.Stat(filepath.Join(j.dir, "run/attempt-1/half"))
		return os.IsNotExist(err)
	})
	j.write("go", "")
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
	server.says("the job is complete: still running")
	assert.Zero(t, first.stop())
	j.start("nn-worker-0", note, "PERSIA_POD_UID=another").says("the job is complete: idle")
	assert.FileExists(t, filepath.Join(j.dir, "nn-worker-0.idle"))
	assert.Equal(t, []string{"1", "2"}, j.lines("nn-worker-0.attempts"))
}

// TestLaunchStops checks that SIGTERM reaches all that the command has started, which gets the pod's time, and
// that a pod of a Kubernetes Job does not count as finished by that.
func TestLaunchStops(t *testing.T) {
	bash := func(script string) []string { return []string{"bash", "-c", script} }
	roles := testkit.Must(filepath.Abs(rolesFile))(t)
	for name, test := range map[string]struct {
		command []string
		once    string
		status  int
	}{
		"a command that saves and ends with success": {bash(saves), "", 0},
		"a launcher that knows no signals":           {bash(`(` + saves + `) & wait`), "", 143},
		"a launcher that ends quietly":               {bash(`trap 'exit 0' TERM; (` + saves + `) & wait`), "", 0},
		"a training in a session of its own":         {bash(`setsid bash -c "` + saves + `" & wait`), "", 143},
		"a server of an older release":               {[]string{"bash", roles, "middleware"}, "", 0},
		"a command of a Kubernetes Job":              {bash(saves), "PERSIA_ONCE=1", 143},
	} {
		t.Run(name, func(t *testing.T) {
			j := newTraining(t, "nn-worker=1,dataloader=0")
			j.write("persia-middleware-server", "#!/bin/bash\n"+saves)
			j.write("config.yml", "")
			env := []string{"PERSIA_RUNTIME=" + j.dir, "PERSIA_PORT=1", "REPLICA_SIZE=1"}
			for _, name := range []string{"PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG"} {
				env = append(env, name+"="+filepath.Join(j.dir, "config.yml"))
			}
			if test.once != "" {
				env = append(env, test.once)
			}
			r := j.startCommand("nn-worker-0", test.command, env...)
			eventually(t, "ready", func() bool { _, err := os.Stat(filepath.Join(j.dir, "ready")); return err == nil })
			assert.Equal(t, test.status, r.stop())
			assert.Equal(t, []string{"saved"}, j.lines("saved"))
			assert.NoFileExists(t, filepath.Join(j.dir, "nn-worker-0.idle"))
			assert.Contains(t, j.lines(".persia/coordinator.json")[0], `"running": false`)
		})
	}
}

// TestLaunchEnds: the pods of a Kubernetes Job end with their training job, the coordinator after the completion
// has asked, and the last metrics that they push stay.
func TestLaunchEnds(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		says   string
	}{
		"complete": {0, "complete in attempt 1"},
		"failed":   {FailedStatus, "failed: 1 attempts failed without a new checkpoint, the last one because nn-worker 1: the command ended with status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var pushed sync.Map
			gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				pushed.Store(r.Method+" "+r.URL.Path, string(body))
			}))
			t.Cleanup(gateway.Close)
			j := newTraining(t, "nn-worker=2,dataloader=1,embedding-ps=1", "PERSIA_ONCE=1", "PERSIA_ATTEMPTS=1")
			const place = "/metrics/job/criteo/run/1/role/"
			j.env = append(j.env, "PERSIA_METRICS_GATEWAY_ADDR="+strings.TrimPrefix(gateway.URL, "http://"))
			server, first := j.start("embedding-ps-0", serve), j.start("nn-worker-0", note, "PERSIA_REPLICA_METRICS="+place+"nn-worker")
			loader := j.start("dataloader-0", note, "PERSIA_REPLICA_METRICS="+place+"dataloader")
			// A replica is idle before its attempt, too.
			second := j.start("nn-worker-1", fmt.Sprintf(`for replica in dataloader-0 nn-worker-0; do
				until [[ -e $replica.attempts && -e $replica.idle ]]; do sleep 0.05; done
			done; exit %d`, test.status))
			assert.Zero(t, second.status())
			assert.Zero(t, loader.status())
			text, _ := pushed.Load("PUT " + place + "dataloader")
			assert.Regexp(t, `^(# TYPE .*\npersia_replica_.*\n)+$`, text)
			assert.Contains(t, text, "\npersia_replica_finished 1\n")
			server.says("the job")

			completion := exec.Command("sh", "complete.sh")
			words := filepath.Join(t.TempDir(), "words")
			completion.Env = append(os.Environ(), "PERSIA_COORDINATOR="+j.coordinator, "PERSIA_RUN=1", "PERSIA_TOKEN="+token,
				"PERSIA_LAST_WORDS="+words, "no_proxy=127.0.0.1")
			assert.Equal(t, test.status, begin(t, completion).status())
			assert.Equal(t, test.says, testkit.Must(answer.Read(testkit.Read(t, words)))(t).String())
			assert.Zero(t, first.status())
			text, _ = pushed.Load("PUT /metrics/job/criteo")
			assert.Contains(t, text, fmt.Sprintf("\npersia_job_failed %d\n", min(test.status, 1)))
			assert.NoError(t, server.process.Process.Signal(syscall.Signal(0)), "JobSet ends the servers")
		})
	}
}

package persia

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLaunchWithoutNATS: a role whose connection is gone for long is deaf for good, and
// no attempt starts before NATS is back.
func TestLaunchWithoutNATS(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_NATS_URL=nats://"+address)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	work := fmt.Sprintf(note+`exec 3<>/dev/tcp/%s/%s; touch connected-$PERSIA_ATTEMPT; [[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`, host, port)
	nnWorker := j.start("nn-worker-0", work)
	// One that has finished its part takes part in the next attempt all the same.
	j.start("dataloader-0", note)
	j.becomes("NATS does not answer")
	outage := listen(t, address)
	j.awaits("connected-1")
	nnWorker.says("attempt 1: connected to NATS")
	j.becomes("1 of 1 dataloaders have finished")
	outage()
	nnWorker.says("no connection to NATS for 0.5 s")
	j.becomes("dataloader 0: NATS does not answer")
	listen(t, address)
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
}

// TestLaunchEndsAfterNATS checks that a launcher may run on after the script that it started has
// ended, and with it the connection to NATS.
func TestLaunchEndsAfterNATS(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_NATS_URL=nats://"+address)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	listen(t, address)
	nnWorker := j.start("nn-worker-0", fmt.Sprintf(note+`(exec 3<>/dev/tcp/%s/%s; until [[ -e end ]]; do sleep 0.1; done); sleep 2`, host, port))
	j.start("dataloader-0", note)
	nnWorker.says("attempt 1: connected to NATS")
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "end"), nil, 0o600))
	assert.Equal(t, "complete in attempt 1", j.becomes("complete"))
}

// TestLaunchStuck lets replicas wait for each other forever, although all of them live.
func TestLaunchStuck(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_STUCK_SECONDS=1")
	nnWorker := j.start("nn-worker-0", note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || { touch $PERSIA_PROGRESS_FILE; exec sleep 600; }; [[ ! -e $PERSIA_PROGRESS_FILE ]]`)
	j.start("dataloader-0", note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`)
	nnWorker.says("attempt 1 ends: no nn-worker has made progress for 1 s")
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
}

// TestLaunchGPUIsLost: a node with a broken GPU does not cost the newest checkpoint.
func TestLaunchGPUIsLost(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1")
	for _, file := range []string{"s0/a.emb", "dense.pt", "embedding_dump_done", "opt.pt"} {
		for _, checkpoint := range []string{"1", "2"} {
			path := filepath.Join(j.dir, "run", "attempt-1", checkpoint, file)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte("num_shards: 1\n"), 0o600))
		}
	}
	python := filepath.Join(j.dir, "python")
	require.NoError(t, os.WriteFile(python, []byte("#!/bin/bash\necho >>asked\n[[ $(wc -l <asked) -gt 2 ]] && echo 8 || echo 7\n"), 0o700))
	j.start("nn-worker-0", note+`echo "from $PERSIA_RESUME_DIR" >>resume`, "PERSIA_GPUS=8", "PERSIA_PYTHON="+python)
	j.start("dataloader-0", note+`[[ $PERSIA_ATTEMPT -gt 3 ]] || exec sleep 600`)
	assert.Equal(t, "complete in attempt 4", j.becomes("complete"))
	assert.Equal(t, []string{"from " + filepath.Join(j.dir, "run/attempt-1/2")}, j.lines("resume"))
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

// TestLaunchChecks checks the errors that the start script finds before PERSIA would, if ever.
func TestLaunchChecks(t *testing.T) {
	t.Parallel()
	python := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(python, []byte("#!/bin/sh\n$FIRST\necho $GPUS_SEEN\n"), 0o700))
	for name, test := range map[string]struct {
		env  []string
		says string
	}{
		"no GPU":              {[]string{"PERSIA_GPUS=1", "PERSIA_PYTHON=" + python, "GPUS_SEEN=0"}, "PyTorch sees 0 GPUs and the replica has asked for 1"},
		"too few GPUs":        {[]string{"PERSIA_GPUS=8", "PERSIA_PYTHON=" + python, "GPUS_SEEN=7"}, "PyTorch sees 7 GPUs and the replica has asked for 8"},
		"all GPUs":            {[]string{"PERSIA_GPUS=8", "PERSIA_PYTHON=" + python, "GPUS_SEEN=8"}, "complete"},
		"a driver that hangs": {[]string{"PERSIA_GPUS=8", "PERSIA_PYTHON=" + python, "FIRST=exec sleep 600", "PERSIA_GPU_SECONDS=0.3"}, "PyTorch has not said within 0.3 s which GPUs it sees"},
		"no PyTorch":          {[]string{"PERSIA_GPUS=8", "PERSIA_PYTHON=" + python, "FIRST=exit 1"}, "PyTorch cannot be asked for its GPUs"},
		"no Python":           {[]string{"PERSIA_GPUS=8", "PERSIA_PYTHON=/none/python"}, "/none/python: No such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, "nn-worker=1,dataloader=0", "PERSIA_ATTEMPTS=1")
			j.start("nn-worker-0", note, test.env...)
			assert.Contains(t, j.becomes(test.says), test.says)
		})
	}
}

// TestLaunchAwaitsFiles: the files that a role needs may be uploaded after its pod has
// started. Until then no attempt starts, so none fails.
func TestLaunchAwaitsFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ replica, variable string }{
		"the global configuration":    {"embedding-ps-0", "PERSIA_GLOBAL_CONFIG"},
		"the embedding configuration": {"embedding-worker-0", "PERSIA_EMBEDDING_CONFIG"},
		"the nn-worker's script":      {"nn-worker-0", "PERSIA_NN_WORKER_ENTRY"},
		"the dataloader's script":     {"dataloader-0", "PERSIA_DATALOADER_ENTRY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, everyRole, "PERSIA_ATTEMPTS=1")
			file := filepath.Join(j.dir, "code", "file")
			pushed, env := withGateway(t)
			env = append(env, test.variable+"="+file)
			replicas := map[string]*replica{}
			for name, command := range map[string]string{"nn-worker-0": note + together, "dataloader-0": note + together, "embedding-worker-0": serve, "embedding-ps-0": serve} {
				if name == test.replica {
					replicas[name] = j.start(name, command, env...)
				} else {
					replicas[name] = j.start(name, command)
				}
			}
			says := test.variable + " names " + file + ", which is not there: is it in the image, or uploaded to a volume that the role mounts?"
			where := strings.TrimSuffix(test.replica, "-0") + " 0"
			j.becomes("waiting after attempt 0 (the job starts): " + where + ": " + says)
			replicas[test.replica].says("waiting for attempt 1: " + says)
			pushed.becomes(t, "attempt 0, alive 0, finished 0, blocked 1")
			assert.NoFileExists(t, filepath.Join(j.dir, "nn-worker-0.attempts"))
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, nil, 0o600))
			assert.Equal(t, "complete in attempt 1", j.becomes("complete"))
			assert.Equal(t, []string{"1"}, j.lines(test.replica+".attempts"))
		})
	}
}

// TestLaunchReportsWhileItChecks: PyTorch may take longer to load than a replica may be
// silent, or hang.
func TestLaunchReportsWhileItChecks(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=2,dataloader=1")
	python, loaded := filepath.Join(j.dir, "python"), filepath.Join(j.dir, "loaded")
	require.NoError(t, os.WriteFile(python, []byte("#!/bin/sh\nuntil [ -e "+loaded+" ]; do sleep 0.05; done\necho 8\n"), 0o700))
	var running atomic.Int32
	coordinator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var report struct {
			Attempt int
			State   string
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&report))
		order := "start"
		if report.Attempt == 1 {
			order = "go"
		}
		if report.State == "running" {
			running.Add(1)
		}
		_, _ = fmt.Fprintf(w, `{"order": %q, "run": "", "attempt": 1, "resume": null}`, order)
	}))
	t.Cleanup(coordinator.Close)
	j.coordinator = strings.TrimPrefix(coordinator.URL, "http://")
	env := []string{"PERSIA_GPUS=8", "PERSIA_PYTHON=" + python}
	hanging := j.start("nn-worker-1", note, env...)
	require.Eventually(t, func() bool { return running.Load() > 2 }, patience, time.Millisecond)
	assert.NoFileExists(t, filepath.Join(j.dir, "nn-worker-1.attempts"))
	assert.Equal(t, 128+int(syscall.SIGTERM), hanging.stop())

	nnWorker := j.start("nn-worker-1", note, env...)
	nnWorker.says("attempt 1: running")
	require.NoError(t, os.WriteFile(loaded, nil, 0o600))
	j.awaits("nn-worker-1.attempts")
	nnWorker.says("attempt 1: finished")
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
		"a launcher that ends quietly":               {`trap 'exit 0' TERM; ` + saves + `wait`, 0},
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

// pushed receives what the replicas of a job push to its metrics gateway.
type pushed chan string

// withGateway returns the environment of replicas that push.
func withGateway(t *testing.T) (pushed, []string) {
	t.Helper()
	bodies := make(pushed, 1000)
	gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- r.Method + " " + r.URL.Path + "\n" + string(body)
	}))
	t.Cleanup(gateway.Close)
	return bodies, []string{"PERSIA_METRICS_GATEWAY_ADDR=" + strings.TrimPrefix(gateway.URL, "http://"), "PERSIA_REPLICA_METRICS=/metrics/job/criteo"}
}

// becomes waits until a replica pushes values, like "attempt 1, alive 0".
func (p pushed) becomes(t *testing.T, values string) {
	t.Helper()
	want := "PUT /metrics/job/criteo\n"
	for value := range strings.SplitSeq(values, ", ") {
		name, _, _ := strings.Cut(value, " ")
		want += fmt.Sprintf("# TYPE persia_replica_%s gauge\npersia_replica_%s\n", name, value)
	}
	require.Eventually(t, func() bool { return <-p == want }, patience, time.Millisecond, want)
}

// TestLaunchPushesMetrics checks that the script pushes the metrics of each replica periodically.
func TestLaunchPushesMetrics(t *testing.T) {
	t.Parallel()
	pushed, env := withGateway(t)
	j := newTraining(t, "nn-worker=1,dataloader=0", env...)
	j.start("nn-worker-0", `sleep 1`)
	pushed.becomes(t, "attempt 1, alive 1, finished 0, blocked 0")
	pushed.becomes(t, "attempt 1, alive 0, finished 1, blocked 0")
}

// TestLaunchWithoutGateway checks that training continues without the gateway, and that the log
// says so once.
func TestLaunchWithoutGateway(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	j := newTraining(t, "nn-worker=1,dataloader=0", "PERSIA_METRICS_GATEWAY_ADDR="+address, "PERSIA_REPLICA_METRICS=/metrics/job/criteo")
	r := j.start("nn-worker-0", `sleep 1`)
	j.becomes("complete")
	log, err := os.ReadFile(r.log)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(log), "cannot push to the metrics gateway at "+address+"; retrying"))
}

// TestLaunchIsAnsweredInPart checks that training continues when the coordinator or the gateway
// ends in the middle of an answer.
func TestLaunchIsAnsweredInPart(t *testing.T) {
	t.Parallel()
	var asked, told atomic.Int32
	coordinator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("ten bytes."))
			return
		}
		_, _ = w.Write([]byte(`{"order": "stop", "run": "", "attempt": 0, "resume": null}`))
	}))
	t.Cleanup(coordinator.Close)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		told.Add(1)
		connection, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) {
			_, _ = connection.Write([]byte("no HTTP\r\n\r\n"))
			_ = connection.Close()
		}
	}))
	t.Cleanup(gateway.Close)
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_METRICS_GATEWAY_ADDR="+strings.TrimPrefix(gateway.URL, "http://"), "PERSIA_REPLICA_METRICS=/metrics/job/criteo")
	j.coordinator = strings.TrimPrefix(coordinator.URL, "http://")
	loader := j.start("dataloader-0", `true`)
	loader.says("the coordinator at " + j.coordinator + " does not answer")
	loader.says("waiting for attempt 1")
	require.Eventually(t, func() bool { return told.Load() > 1 }, patience, time.Millisecond)
}

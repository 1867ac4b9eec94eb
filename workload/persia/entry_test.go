package persia

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// entry starts entry.py as persia-launcher starts it in a pod of PERSIA's operator, with a
// script and variables in addition to those that every such pod has.
func entry(t *testing.T, script string, env ...string) *exec.Cmd {
	t.Helper()
	testkit.Processes(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.py"), []byte(script), 0o600))
	program, err := filepath.Abs("entry.py")
	require.NoError(t, err)
	process := exec.Command("python3", "-B", program, "--local_rank=1")
	process.Dir = dir
	process.Env = append([]string{"PATH=" + os.Getenv("PATH"), "PERSIA_ROLE=dataloader", "PERSIA_SCRIPT=" + filepath.Join(dir, "script.py"),
		"PERSIA_REPORT_SECONDS=0.05"}, env...)
	return process
}

// TestEntryRunsTheScript as if nothing were between it and persia-launcher.
func TestEntryRunsTheScript(t *testing.T) {
	t.Parallel()
	const script = `
import os, sys
print(os.path.basename(sys.argv[0]), sys.argv[1:], os.path.basename(os.environ["PERSIA_DATALOADER_ENTRY"]), flush=True)
sys.exit(7)
`
	process := entry(t, script, "PERSIA_DATALOADER_ENTRY=/opt/persia/entry.py")
	output, err := process.Output()
	assert.ErrorContains(t, err, "exit status 7")
	assert.Equal(t, "script.py ['--local_rank=1'] script.py\n", string(output))
}

// TestEntryCountsTrainers of all pods, since torch.distributed.launch knows of one.
func TestEntryCountsTrainers(t *testing.T) {
	t.Parallel()
	const script = `
import os
print(*(os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "REPLICA_INDEX", "REPLICA_SIZE", "NODE_RANK", "TORCHELASTIC_USE_AGENT_STORE")))
`
	process := entry(t, script, "PERSIA_ROLE=nn-worker", "PERSIA_NODE_RANK=2", "PERSIA_NODES=3", "NPROC_PER_NODE=4",
		"REPLICA_INDEX=0", "REPLICA_SIZE=1", "RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=4", "TORCHELASTIC_USE_AGENT_STORE=True")
	output, err := process.Output()
	require.NoError(t, err)
	assert.Equal(t, "9 12 1 2 3 2 False\n", string(output))
}

// TestEntryFindsTrouble before the script does, or does not.
func TestEntryFindsTrouble(t *testing.T) {
	t.Parallel()
	python := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(python, []byte("#!/bin/sh\n$FIRST\necho 1\n"), 0o700))
	for name, test := range map[string]struct {
		env  []string
		says string
	}{
		"GPUs that PyTorch does not see": {[]string{"PERSIA_GPUS=2", "PERSIA_PYTHON=" + python}, "PyTorch sees 1 GPUs and the replica has asked for 2"},
		"a driver that hangs":            {[]string{"PERSIA_GPUS=1", "PERSIA_PYTHON=" + python, "FIRST=exec sleep 600", "PERSIA_GPU_SECONDS=0.3"}, "PyTorch has not said within 0.3 s which GPUs it sees"},
		"a missing configuration":        {[]string{"PERSIA_GLOBAL_CONFIG=/nowhere/global.yml"}, "/nowhere/global.yml, which is not there"},
		"a missing script":               {[]string{"PERSIA_SCRIPT=/nowhere/train.py"}, "/nowhere/train.py, which is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := entry(t, `print("trains")`, test.env...).CombinedOutput()
			assert.ErrorContains(t, err, "exit status 1")
			assert.Contains(t, string(output), test.says)
			assert.NotContains(t, string(output), "trains")
		})
	}
}

// TestEntryAddsTheDriver checks that entry.py adds the driver to the image's library path.
func TestEntryAddsTheDriver(t *testing.T) {
	t.Parallel()
	driver := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(driver, "lib64"), 0o700))
	output, err := entry(t, `import os; print(os.environ["LD_LIBRARY_PATH"])`, "PERSIA_DRIVER_DIR="+driver, "LD_LIBRARY_PATH=/opt/conda/lib").Output()
	require.NoError(t, err)
	assert.Equal(t, "/opt/conda/lib:"+driver+"/lib64\n", string(output))
}

// TestEntryPushes how the script is, while it runs and at its end. The first process of a
// pod speaks for all.
func TestEntryPushes(t *testing.T) {
	t.Parallel()
	const wait = `
import os, time
while not os.path.exists("told"):
    time.sleep(0.02)
`
	for name, test := range map[string]struct {
		script string
		env    string
		wants  []string
	}{
		"success": {wait, "LOCAL_RANK=0", []string{"1 0", "0 1"}},
		"failure": {wait + "raise SystemExit(1)", "LOCAL_RANK=0", []string{"1 0", "0 0"}},
		"another": {``, "LOCAL_RANK=1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var said []string
			process := entry(t, test.script, test.env)
			gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				body := make([]byte, 1000)
				n, _ := r.Body.Read(body)
				var alive, finished int
				_, err := fmt.Sscanf(string(body[:n]), "# TYPE persia_replica_alive gauge\npersia_replica_alive %d\n# TYPE persia_replica_finished gauge\npersia_replica_finished %d\n", &alive, &finished)
				assert.NoError(t, err, "%s", body[:n])
				assert.Equal(t, "PUT /metrics/job/a/replica/0", r.Method+" "+r.URL.Path)
				if now := fmt.Sprint(alive, finished); len(said) == 0 || said[len(said)-1] != now {
					said = append(said, now)
				}
				assert.NoError(t, os.WriteFile(filepath.Join(process.Dir, "told"), nil, 0o600))
			}))
			t.Cleanup(gateway.Close)
			process.Env = append(process.Env, "PERSIA_METRICS_GATEWAY_ADDR="+strings.TrimPrefix(gateway.URL, "http://"), "PERSIA_REPLICA_METRICS=/metrics/job/a/replica/0")
			_ = process.Run()
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, test.wants, said)
		})
	}
}

// TestEntryEndsTheScript when its pod ends, and lets it save.
func TestEntryEndsTheScript(t *testing.T) {
	t.Parallel()
	const script = `
import signal, sys, time
def save(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(600)
`
	process := entry(t, script)
	output, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	lines := bufio.NewReader(output)
	word, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "ready\n", word)
	require.NoError(t, process.Process.Signal(syscall.SIGTERM))
	timer := time.AfterFunc(patience, func() { _ = process.Process.Kill() })
	defer timer.Stop()
	word, err = lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "saved\n", word)
	assert.NoError(t, process.Wait())
}

package persia

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// TestCompletionScripts: the completion tells of each change, and ends as the job does, which no other release tells it. The
// metrics gateway beside it starts again when it ends early, and leaves nothing behind, however the pod ends.
func TestCompletionScripts(t *testing.T) {
	testkit.Processes(t)
	t.Parallel()
	_, err := exec.LookPath("wget")
	require.NoError(t, err, "complete.sh needs wget: apt install wget")
	var examples map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(testkit.Read(t, "testdata/answers.json")), &examples))
	const away, older = "the coordinator at ADDRESS does not answer", "complete in attempt 1\nfailed: \"phase\": \"failed\", "
	running, full := string(examples["it trains, and has a checkpoint and a folder that is none"]), string(examples["the volume is full"])
	complete, failed := string(examples["it is complete"]), string(examples["it has failed"])
	newer := strings.Replace(complete, `"version": 1`, `"version": 2`, 1)
	// Answers that differ in times only are said every five minutes.
	later, muchLater := strings.Replace(running, `"age": 1`, `"age": 2`, 1), strings.Replace(running, `"age": 1`, `"age": 9`, 1)
	goesOn := strings.Join(append(slices.Repeat([]string{later}, 19), muchLater, later), "\n")
	const moved = 128 + int(syscall.SIGTERM)
	for name, test := range map[string]struct {
		// answers are the coordinator's. away is no answer, and the last one stays.
		answers string
		gateway bool
		// stopped says when the pod is told to end.
		stopped string
		status  int
	}{
		"a job that completes":                           {strings.Join([]string{away, older, running, goesOn, away, full, newer, complete}, "\n"), false, "", 0},
		"a job that fails":                               {running + "\n" + failed, false, "", FailedStatus},
		"a pod that is moved":                            {running, false, "running", moved},
		"a gateway of a job that completes":              {running + "\n" + complete, true, "", 0},
		"a gateway of a job that fails":                  {running + "\n" + failed, true, "", FailedStatus},
		"a gateway in a pod that is moved":               {running, true, "running", moved},
		"a gateway in a pod that is moved after the end": {failed, true, "last scrape", FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var lock sync.Mutex
			answers := strings.Split(test.answers, "\n")
			says := strings.ReplaceAll(strings.Join(slices.Compact(slices.Clone(answers)), "\n")+"\n", later+"\n", "")
			coordinator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				lock.Lock()
				defer lock.Unlock()
				answer := answers[0]
				if len(answers) > 1 {
					answers = answers[1:]
				}
				if answer == away || r.URL.String() != "/answer?run=7" || r.Header.Get("Authorization") != "Bearer "+token {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = w.Write([]byte(answer + "\n"))
			}))
			t.Cleanup(coordinator.Close)
			address := strings.TrimPrefix(coordinator.URL, "http://")
			for file, text := range map[string]string{
				// The first gateway ends at once.
				"pushgateway": `echo $$ $* >>DIR/gateways; [ $(wc -l <DIR/gateways) -gt 1 ] || exit 2; exec /bin/sleep 600`,
				"sleep":       `[ $1 != 0.06 -a $1 != 600 ] || echo last scrape >>DIR/sleeps; exec /bin/sleep $1`,
			} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\n"+strings.ReplaceAll(text, "DIR", dir)+"\n"), 0o700))
			}
			process := exec.Command("sh", "-c", completeScript)
			if test.gateway {
				process = exec.Command("sh", "-c", serveScript, "serve.sh", completeScript)
			}
			lastScrape := "0.06"
			if test.stopped != "" {
				lastScrape = "600"
			}
			process.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "no_proxy=127.0.0.1", "PERSIA_COORDINATOR="+address, "PERSIA_RUN=7", "PERSIA_TOKEN="+token,
				"PERSIA_POLL_SECONDS=0.05", "PERSIA_GATEWAY_PORT=9091", "PERSIA_GATEWAY_RESTART_SECONDS=0.05", "PERSIA_LAST_SCRAPE_SECONDS="+lastScrape,
				"PERSIA_LAST_WORDS="+filepath.Join(dir, "words"))
			p := begin(t, process)
			read := func(file string) string {
				text, _ := os.ReadFile(filepath.Join(dir, file))
				return string(text)
			}
			if test.gateway && test.stopped != "" {
				eventually(t, "another gateway", func() bool { return strings.Count(read("gateways"), "\n") == 2 })
			}
			if test.stopped != "" {
				eventually(t, test.stopped, func() bool { return strings.Contains(p.text()+read("sleeps"), test.stopped) })
				p.stop()
			}
			assert.Equal(t, test.status, p.status())
			if test.status != moved {
				assert.Equal(t, answers[0]+"\n", read("words"), "Kubernetes keeps the last answer")
			}
			const again = "the metrics gateway ended with status 2: it starts again\n"
			said := slices.Compact(strings.SplitAfter(strings.ReplaceAll(p.text(), again, ""), "\n"))
			assert.Equal(t, strings.ReplaceAll(says, "ADDRESS", address), strings.Join(said, ""))
			assert.Equal(t, test.gateway && strings.Contains(p.text(), again), test.gateway)
			for gateway := range strings.Lines(read("gateways")) {
				words := strings.Fields(gateway)
				assert.Equal(t, []string{"--log.level=error", "--web.listen-address=:9091"}, words[1:])
				pid := testkit.Must(strconv.Atoi(words[0]))(t)
				eventually(t, "the gateway ends", func() bool { return syscall.Kill(pid, 0) != nil })
			}
		})
	}
}

// TestRoles checks that each role of an older release starts as there, or says what it lacks.
func TestRoles(t *testing.T) {
	const server = "|--port|23333|--global-config|/config/global config.yml|--embedding-config|/config/embedding.yml|--replica-index|1|--replica-size|2|"
	for name, test := range map[string]struct {
		role string
		// without is a variable that is not set.
		without string
		status  int
		says    string
	}{
		"a trainer": {"trainer", "", 42,
			"python|-m|torch.distributed.launch|--nproc_per_node=8|--nnodes=2|--node_rank=1|--master_addr=criteo-nn-worker-0|--master_port=23456|/code/train.py|"},
		"a data composer":     {"datacompose", "", 42, "python|/code/data_compose.py|"},
		"a middleware":        {"middleware", "", 42, "persia-middleware-server" + server},
		"an embedding server": {"embserver", "", 42, "persia-embedding-server" + server},
		"without a role":      {"", "", 2, "roles.sh: usage: roles.sh trainer|datacompose|middleware|embserver"},
		"an unknown role":     {"nn-worker", "", 2, "roles.sh: unknown role nn-worker: want trainer, datacompose, middleware or embserver"},
		"without a master":    {"trainer", "MASTER_ADDR", 2, "roles.sh: trainer needs what is not set: MASTER_ADDR"},
		"without an entry":    {"datacompose", "PERSIA_DATALOADER_ENTRY", 2, "roles.sh: datacompose needs what is not set: PERSIA_DATALOADER_ENTRY"},
		"without an index":    {"embserver", "REPLICA_INDEX", 2, "roles.sh: embserver needs what is not set: REPLICA_INDEX"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			command := exec.Command("bash", append([]string{rolesFile}, strings.Fields(test.role)...)...)
			for _, program := range []string{"python", "persia-middleware-server", "persia-embedding-server"} {
				text := "#!/bin/bash\n[[ ! -d $LOG_DIR ]] || printf '%s|' \"${0##*/}\" \"$@\"; exit 42\n"
				require.NoError(t, os.WriteFile(filepath.Join(dir, program), []byte(text), 0o700))
			}
			for _, variable := range []string{
				"PATH=" + os.Getenv("PATH"), "LOG_DIR=" + dir + "/logs/of this/job", "PERSIA_PYTHON=" + dir + "/python", "PERSIA_RUNTIME=" + dir, "PERSIA_PORT=23333",
				"PERSIA_GLOBAL_CONFIG=/config/global config.yml", "PERSIA_EMBEDDING_CONFIG=/config/embedding.yml",
				"PERSIA_NN_WORKER_ENTRY=/code/train.py", "PERSIA_DATALOADER_ENTRY=/code/data_compose.py", "REPLICA_INDEX=1", "REPLICA_SIZE=2",
				"NODE_RANK=1", "NPROC_PER_NODE=8", "MASTER_ADDR=criteo-nn-worker-0", "MASTER_PORT=23456",
			} {
				if name, _, _ := strings.Cut(variable, "="); name != test.without {
					command.Env = append(command.Env, variable)
				}
			}
			output, _ := command.CombinedOutput()
			assert.Equal(t, test.status, command.ProcessState.ExitCode())
			assert.Contains(t, string(output), test.says)
		})
	}
}

// TestEntry checks that the script of a pod of PERSIA's operator has its arguments, and saves when its pod ends.
func TestEntry(t *testing.T) {
	testkit.Processes(t)
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script.py")
	require.NoError(t, os.WriteFile(script, []byte(`
import os, signal, sys, time
def save(*_):
    print("saved")
    sys.exit(7)
signal.signal(signal.SIGTERM, save)
print(os.path.basename(sys.argv[0]), sys.argv[1:], flush=True)
time.sleep(600)
`), 0o600))
	process := exec.Command("python3", "-B", "entry.py", "--local_rank=1")
	process.Env = []string{"PATH=" + os.Getenv("PATH"), "PERSIA_ROLE=dataloader", "PERSIA_SCRIPT=" + script}
	p := begin(t, process)
	p.says("script.py ['--local_rank=1']\n")
	assert.Equal(t, 7, p.stop())
	p.says("saved")
}

package persia

import (
	"encoding/json"
	"fmt"
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

// broken is a machine with faults, as Python's sitecustomize: each lasts while a file with
// its name is in the folder FAULTS.
const broken = `
import builtins, errno, http.client, os, signal, socket, time

faults, volume = os.environ["FAULTS"], os.environ["VOLUME"]
pod = os.environ.get("POD_IP", "127.0.0.1")

def lasts(fault):
    return os.path.lexists(os.path.join(faults, fault))

def wait(path):
    while str(path).startswith(volume + "/") and lasts("hang"):
        time.sleep(0.02)

def of_volume(function):
    def call(path, *arguments, **named):
        wait(path)
        return function(path, *arguments, **named)
    return call

def flush(descriptor):
    wait(os.readlink(f"/proc/self/fd/{descriptor}"))
    if lasts("full"):
        raise OSError(errno.ENOSPC, "No space left on device")
    return fsync(descriptor)

def get_answer(connection):
    with opened(os.path.join(faults, "reports"), "a") as file:
        file.write("a report\n")
    return get(connection)

def signal_process(pid, number):
    # The process waits for a device.
    if number != signal.SIGKILL or not lasts("unkillable"):
        kill(pid, number)

def look_up(host, *arguments, **named):
    if not host.replace(".", "").isdigit():
        with open(os.path.join(faults, "looked-up"), "a") as file:
            file.write(host + "\n")
        if lasts("nameless") or not host.endswith(".svc.cluster.test."):
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        with opened(os.path.join(faults, "addresses")) as file:
            return [found for address in file.read().split() for found in getaddrinfo(address, *arguments, **named)]
    # Each coordinator has an address of its own.
    return getaddrinfo(pod if host == "127.0.0.1" else host, *arguments, **named)

def listen_at(server, address):
    bind(server, (address[0] or pod, address[1]))

def open_file(path, *arguments, **named):
    if path == "/etc/resolv.conf":
        path = os.path.join(faults, "resolv.conf")
    file = opened(path, *arguments, **named)
    if lasts("torn") and str(path).startswith(volume + "/state/") and file.writable():
        kill(os.getpid(), signal.SIGKILL)
    return file

fsync, kill, getaddrinfo, opened, bind = os.fsync, os.kill, socket.getaddrinfo, open, socket.socket.bind
os.fsync, os.kill, socket.getaddrinfo, socket.socket.bind = flush, signal_process, look_up, listen_at
get = http.client.HTTPConnection.getresponse
http.client.HTTPConnection.getresponse = get_answer
builtins.open = of_volume(open_file)
for name in ("scandir", "listdir", "stat", "lstat", "replace", "makedirs", "open", "remove", "rmdir"):
    setattr(os, name, of_volume(getattr(os, name)))
`

// machine is one with faults.
type machine struct {
	t      testing.TB
	faults string
	env    []string
}

// newMachine returns the replicas of a training without a fault. Its volume has the checkpoints and
// the state of the run.
func newMachine(j *training) machine {
	m := machine{j.t, j.t.TempDir(), nil}
	m.write("sitecustomize.py", broken)
	m.write("addresses", "127.0.0.1")
	m.write("resolv.conf", "nameserver 10.0.0.10\nsearch persia.svc.cluster.test svc.cluster.test cluster.test\noptions ndots:5\n")
	volume := filepath.Join(j.dir, "volume")
	m.env = []string{
		"PYTHONPATH=" + m.faults, "FAULTS=" + m.faults, "VOLUME=" + volume,
		"PERSIA_STATE_DIR=" + filepath.Join(volume, "state"), "PERSIA_CKPT_ROOT=" + filepath.Join(volume, "run"),
	}
	return m
}

func (m machine) write(name, text string) {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(filepath.Join(m.faults, name), []byte(text), 0o600))
}

// breaks lets a fault begin, and mends lets it end.
func (m machine) breaks(fault string) { m.write(fault, "") }

func (m machine) mends(fault string) {
	m.t.Helper()
	require.NoError(m.t, os.Remove(filepath.Join(m.faults, fault)))
}

// reports waits for more reports of replicas on this machine.
func (m machine) reports(more int) {
	m.t.Helper()
	count := func() int {
		reports, err := os.ReadFile(filepath.Join(m.faults, "reports"))
		require.NoError(m.t, err)
		return strings.Count(string(reports), "\n")
	}
	before := count()
	require.Eventually(m.t, func() bool { return count() >= before+more }, patience, 20*time.Millisecond, "%d more reports", more)
}

// untilGo is a command that runs until a file exists.
const untilGo = `until [[ -e go ]]; do sleep 0.05; done`

// TestLaunchVolumeHangs: reports go on while a volume does not answer for much longer than
// a replica may be silent, before an attempt and in one.
func TestLaunchVolumeHangs(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_LOST_SECONDS=5", "PERSIA_LOOK_SECONDS=0.1")
	m := newMachine(j)
	m.breaks("hang")
	config := filepath.Join(j.dir, "volume", "global_config.yml")
	require.NoError(t, os.MkdirAll(filepath.Dir(config), 0o700))
	require.NoError(t, os.WriteFile(config, nil, 0o600))
	nnWorker := j.start("nn-worker-0", note+untilGo, append(m.env, "PERSIA_GLOBAL_CONFIG="+config)...)
	j.start("dataloader-0", note)
	j.becomes("nn-worker 0: the volume with its configuration and its script does not answer")
	assert.NotContains(t, j.becomes("a volume has not answered for"), "is not there")
	m.mends("hang")
	j.awaits("nn-worker-0.attempts")
	m.breaks("hang")
	assert.Contains(t, j.becomes("a volume has not answered for"), "running attempt 1")
	m.reports(20)
	assert.Contains(t, j.status(), "running attempt 1")
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "go"), nil, 0o600))
	nnWorker.says("the job is complete: idle")
	assert.Contains(t, j.status(), "finished in attempt 1: recording that in ")
	m.mends("hang")
	assert.Equal(t, "complete in attempt 1", j.becomes("complete"))
	assert.Equal(t, []string{"1"}, j.lines("nn-worker-0.attempts"))
}

// TestLaunchProcessHangs: a replica with a process that cannot be killed reports, and says
// so; the next attempt waits for it.
func TestLaunchProcessHangs(t *testing.T) {
	t.Parallel()
	const stubborn = `trap '' TERM; [[ $PERSIA_ATTEMPT -gt 1 ]] || while :; do sleep 0.05; done`
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_LOST_SECONDS=5", "PERSIA_STOP_SECONDS=0.2", "PERSIA_HANG_SECONDS=6")
	m := newMachine(j)
	m.breaks("unkillable")
	j.start("nn-worker-0", note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || { until [[ -e dataloader-0.attempts ]]; do sleep 0.05; done; exit 7; }`)
	loader := j.start("dataloader-0", note+stubborn, m.env...)
	j.becomes("dataloader 0 still runs")
	assert.Regexp(t, `dataloader 0: process \d+ \(bash\) hangs and cannot be killed`, j.becomes("hangs and cannot be killed"))
	loader.says("hangs and cannot be killed: it waits for a device or a volume of its node")
	m.mends("unkillable")
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
}

// TestLaunchWithoutNames checks that a replica looks up the coordinator's name in one step, and
// continues while DNS fails, even if the connection breaks.
func TestLaunchWithoutNames(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1")
	m := newMachine(j)
	_, port, _ := strings.Cut(j.coordinator, ":")
	named := "PERSIA_COORDINATOR=clicks-nn-worker-0.clicks-nn-worker.persia.svc:" + port
	first := j.start("nn-worker-0", note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`, named)
	j.start("dataloader-0", note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`, append(m.env, named)...)
	j.awaits("dataloader-0.attempts")
	m.breaks("nameless")
	m.reports(30)
	assert.Contains(t, j.status(), "running attempt 1")
	first.stop()
	j.start("nn-worker-0", note, "PERSIA_POD_UID=another", named)
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
	lookedUp, err := os.ReadFile(filepath.Join(m.faults, "looked-up"))
	require.NoError(t, err)
	names := strings.Fields(string(lookedUp))
	assert.LessOrEqual(t, len(names), 10)
	for _, name := range names {
		assert.Equal(t, "clicks-nn-worker-0.clicks-nn-worker.persia.svc.cluster.test.", name)
	}
}

// TestLaunchTwoCoordinators: the name of nn-worker 0 has two addresses while its lost node is
// listed. The replicas follow the substitute, although the old pod still runs.
func TestLaunchTwoCoordinators(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_LOOK_SECONDS=0.1", "PERSIA_LOST_SECONDS=5", "PERSIA_STOP_SECONDS=0.5")
	m := newMachine(j)
	_, port, _ := strings.Cut(j.coordinator, ":")
	env := append(m.env, "PERSIA_COORDINATOR=clicks-nn-worker-0.clicks-nn-worker.persia.svc:"+port)
	m.write("addresses", "127.0.0.2")
	old := j.start("nn-worker-0", note+`exec sleep 600`, append(env, "POD_IP=127.0.0.2")...)
	j.coordinator = "127.0.0.2:" + port
	loader := j.start("dataloader-0", note+untilGo, env...)
	j.becomes("running attempt 1")
	j.awaits("dataloader-0.attempts")
	m.write("addresses", "127.0.0.2 127.0.0.3")
	j.start("nn-worker-0", note+untilGo, append(env, "POD_IP=127.0.0.3", "PERSIA_POD_UID=another")...)
	old.says("a newer coordinator has taken over: standing down")
	j.coordinator = "127.0.0.3:" + port
	loader.says("attempt 2: running")
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "go"), nil, 0o600))
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
}

// TestLaunchOutdatedCoordinator checks that a replica whose connection breaks does not obey a
// coordinator that has a successor, and continues once it reaches the successor.
func TestLaunchOutdatedCoordinator(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"which knows it":            `{"order": "stop", "run": "", "attempt": 2, "superseded": true, "silence": 30}`,
		"which lacks the record":    `{"order": "start", "run": "", "attempt": 1, "resume": null, "silence": 30}`,
		"which waits for attempt 2": `{"order": "stop", "run": "", "attempt": 1, "silence": 30}`,
		"which fails":               "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, "nn-worker=1,dataloader=1")
			m := newMachine(j)
			address := freeAddress(t)
			_, port, _ := strings.Cut(address, ":")
			var obeyed, ignored atomic.Int32
			successor := httptest.NewUnstartedServer(answering(t, func(told report) string {
				if told.Attempt == 2 {
					obeyed.Add(1)
					return `{"order": "go", "run": "", "attempt": 2, "resume": null, "silence": 30}`
				}
				return `{"order": "start", "run": "", "attempt": 2, "resume": null, "silence": 30}`
			}))
			old := httptest.NewUnstartedServer(answering(t, func(told report) string {
				if told.Attempt < 2 {
					return ""
				}
				ignored.Add(1)
				return answer
			}))
			for at, server := range map[string]*httptest.Server{"127.0.0.2:": old, "127.0.0.3:": successor} {
				_ = server.Listener.Close()
				listener, err := net.Listen("tcp", at+port)
				require.NoError(t, err)
				server.Listener = listener
				server.Start()
				t.Cleanup(server.Close)
			}
			m.write("addresses", "127.0.0.2 127.0.0.3")
			loader := j.start("dataloader-0", note+untilGo, append(m.env, "PERSIA_COORDINATOR=clicks-nn-worker-0.clicks-nn-worker.persia.svc:"+port)...)
			require.Eventually(t, func() bool { return obeyed.Load() > 0 }, patience, time.Millisecond)
			before := ignored.Load()
			successor.CloseClientConnections()
			require.Eventually(t, func() bool { return ignored.Load() > before }, patience, time.Millisecond)
			after := obeyed.Load()
			require.Eventually(t, func() bool { return obeyed.Load() > after+1 }, patience, time.Millisecond)
			require.NoError(t, os.WriteFile(filepath.Join(j.dir, "go"), nil, 0o600))
			loader.says("attempt 2: finished")
			assert.Equal(t, []string{"2"}, j.lines("dataloader-0.attempts"))
		})
	}
}

// TestLaunchUnanswered checks that a replica ends its command if the coordinator has not answered
// for the announced time, even if no report is due by then.
func TestLaunchUnanswered(t *testing.T) {
	t.Parallel()
	for _, beat := range []string{"0.1", "600"} {
		t.Run(beat+" seconds between reports", func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_BEAT_SECONDS="+beat)
			var reports atomic.Int32
			j.coordinatedBy(func(report) string {
				if reports.Add(1) > 1 {
					return ""
				}
				return `{"order": "start", "run": "", "attempt": 1, "resume": null, "silence": 1}`
			})
			loader := j.start("dataloader-0", `trap 'echo ended >ended; exit 0' TERM; while :; do sleep 0.05; done`)
			loader.says("attempt 1: failed: no answer from the coordinator for 1 s")
			j.awaits("ended")
		})
	}
}

// report is a replica's report.
type report struct {
	Attempt int
	State   string
	Ending  bool
}

// coordinatedBy lets a function answer the reports of a training's replicas. It does not answer if
// the function returns "".
func (j *training) coordinatedBy(answer func(report) string) {
	coordinator := httptest.NewServer(answering(j.t, answer))
	j.t.Cleanup(coordinator.Close)
	j.coordinator = strings.TrimPrefix(coordinator.URL, "http://")
}

// answering returns a coordinator whose answers a function returns, or that fails if it returns "".
func answering(t testing.TB, answer func(report) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var told report
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&told))
		text := answer(told)
		if text == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprint(w, text)
	})
}

// TestLaunchSilent: an attempt ends when a replica that runs does not report, and the next one
// waits for it.
func TestLaunchSilent(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_LOST_SECONDS=5")
	j.start("nn-worker-0", note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`)
	loader := j.start("dataloader-0", note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`)
	j.awaits("nn-worker-0.attempts")
	j.awaits("dataloader-0.attempts")
	require.NoError(t, loader.process.Process.Signal(syscall.SIGSTOP))
	said := j.becomes("waiting after attempt 1")
	require.NoError(t, loader.process.Process.Signal(syscall.SIGCONT))
	assert.Contains(t, said, "(dataloader 0 has not been heard of for 5 s): dataloader 0 is not there")
	assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
}

// TestLaunchRecordIsTorn checks that a coordinator that is killed while it writes the record keeps
// the previous one, from which its successor continues.
func TestLaunchRecordIsTorn(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1")
	m := newMachine(j)
	first := j.start("nn-worker-0", note+untilGo, m.env...)
	j.start("dataloader-0", note+untilGo)
	j.awaits("nn-worker-0.attempts")
	j.awaits("dataloader-0.attempts")
	m.breaks("torn")
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "go"), nil, 0o600))
	assert.Equal(t, -1, first.status())
	m.mends("torn")
	j.start("nn-worker-0", note, m.env...)
	j.becomes("complete in attempt ")
}

// TestLaunchRecordIsBroken: a record that is truncated is not the one of a new run. Nothing
// trains until somebody has looked.
func TestLaunchRecordIsBroken(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "truncated": `{"attempt": 7, "do`, "something else": "7",
		"no text": "\xff\xfe", "another type": `{"term": "7"}`, "no path": `{"resume": 7}`, "no count": `{"doubts": {"a": "7"}}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, "nn-worker=1,dataloader=1")
			record := filepath.Join(j.dir, ".persia", "coordinator.json")
			require.NoError(t, os.Mkdir(filepath.Dir(record), 0o700))
			require.NoError(t, os.WriteFile(record, []byte(text), 0o600))
			j.start("nn-worker-0", note)
			j.start("dataloader-0", note)
			j.becomes("the checkpoints cannot be read: " + record + " is not the record of a run; if the run was not complete, remove the file, 2 times in a row")
			assert.NoFileExists(t, filepath.Join(j.dir, "nn-worker-0.attempts"))
			require.NoError(t, os.Remove(record))
			j.becomes("complete in attempt 1")
		})
	}
}

// TestLaunchServerEnds: a server that ends with success while nn-workers run is lost.
func TestLaunchServerEnds(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"embedding-ps-0"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, everyRole)
			for _, name := range []string{"nn-worker-0", "dataloader-0", "embedding-worker-0", "embedding-ps-0"} {
				switch {
				case name == server:
					j.start(name, note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || exit 0; exec sleep 600`)
				case strings.HasPrefix(name, "embedding"):
					j.start(name, serve)
				default:
					j.start(name, note+`[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`)
				}
			}
			assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
		})
	}
}

// TestLaunchKeepsItsConnection: a replica reports over one connection.
func TestLaunchKeepsItsConnection(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1")
	var connections, reports atomic.Int32
	coordinator := httptest.NewUnstartedServer(answering(t, func(report) string {
		reports.Add(1)
		return `{"order": "stop", "run": "", "attempt": 0}`
	}))
	coordinator.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	coordinator.Start()
	t.Cleanup(coordinator.Close)
	j.coordinator = strings.TrimPrefix(coordinator.URL, "http://")
	j.start("dataloader-0", note)
	require.Eventually(t, func() bool { return reports.Load() > 20 }, patience, time.Millisecond)
	assert.EqualValues(t, 1, connections.Load())
}

// TestLaunchLauncherEnds checks that a replica whose launcher ends before the launched processes
// does not report more often than usual.
func TestLaunchLauncherEnds(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1", "PERSIA_BEAT_SECONDS=600")
	var ending atomic.Int32
	waits := make(chan bool, 100)
	j.coordinatedBy(func(told report) string {
		switch {
		case told.Attempt == 0:
			return `{"order": "start", "run": "", "attempt": 1, "resume": null}`
		case told.State == "running" && !told.Ending:
			j.awaits("ready")
		case told.Ending:
			ending.Add(1)
		default:
			waits <- true
		}
		return `{"order": "stop", "run": "", "attempt": 1, "resume": null}`
	})
	j.start("dataloader-0", `(trap '' TERM; touch ready; sleep 2) & wait`)
	<-waits
	assert.EqualValues(t, 1, ending.Load())
}

// TestLaunchCannotRecord: that a job is complete is not lost when it cannot be recorded, and
// people are told.
func TestLaunchCannotRecord(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1")
	m := newMachine(j)
	nnWorker := j.start("nn-worker-0", note+untilGo, m.env...)
	loader := j.start("dataloader-0", note)
	j.awaits("nn-worker-0.attempts")
	m.breaks("full")
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "go"), nil, 0o600))
	assert.Contains(t, j.becomes("cannot be recorded"), "finished in attempt 1; this cannot be recorded: [Errno 28] No space left on device")
	nnWorker.says("the state of the run cannot be recorded: [Errno 28] No space left on device")
	m.mends("full")
	require.Eventually(t, func() bool { return j.status() == "complete in attempt 1" }, patience, 20*time.Millisecond)
	nnWorker.stop()
	loader.stop()
	j.start("nn-worker-0", note, m.env...)
	assert.Equal(t, "complete in attempt 1", j.becomes("complete"))
	assert.Equal(t, []string{"1"}, j.lines("nn-worker-0.attempts"))
}

// TestLaunchAddressOfAnotherJob checks that a replica drops a kept address that another job has
// now.
func TestLaunchAddressOfAnotherJob(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1")
	j.start("nn-worker-0", note, "PERSIA_COORDINATOR=localhost"+strings.TrimPrefix(j.coordinator, "127.0.0.1"))
	loader := j.start("dataloader-0", note)
	loader.says("is of another run")
	assert.Contains(t, j.status(), "dataloader 0 is not there")
}

// TestLaunchVolumeHangsAtTheStart: a replica says so if the volume with its files stops
// answering just before its command begins.
func TestLaunchVolumeHangsAtTheStart(t *testing.T) {
	t.Parallel()
	j := newTraining(t, "nn-worker=1,dataloader=1")
	m := newMachine(j)
	config := filepath.Join(j.dir, "volume", "global_config.yml")
	require.NoError(t, os.MkdirAll(filepath.Dir(config), 0o700))
	require.NoError(t, os.WriteFile(config, nil, 0o600))
	j.coordinatedBy(func(told report) string {
		if told.Attempt == 0 {
			m.breaks("hang")
		}
		return `{"order": "start", "run": "", "attempt": 1, "resume": null}`
	})
	loader := j.start("dataloader-0", note, append(m.env, "PERSIA_GLOBAL_CONFIG="+config)...)
	loader.says("attempt 1: failed: the volume with its configuration and its script does not answer")
	m.mends("hang")
}

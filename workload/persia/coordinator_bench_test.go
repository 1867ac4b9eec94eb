package persia

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkCoordinator measures the real coordinator with one real replica and stand-ins that
// report as replicas do, each over its own connection, every five seconds and at once when it has
// news: how much of a core the reports take, how long an answer takes, and how long after the kill
// of the real replica all run in the next attempt, 10 seconds of pause included. As the kubelet
// would, it starts the killed replica again. The most replicas fit into 20,000 open files.
func BenchmarkCoordinator(b *testing.B) {
	for _, replicas := range []int{468, 1000, 2000, 5000, 10_000, 19_000} {
		b.Run(fmt.Sprintf("%d replicas", replicas), func(b *testing.B) {
			for b.Loop() {
				measureCoordinator(b, replicas)
			}
		})
	}
}

func measureCoordinator(b *testing.B, replicas int) {
	j := newTraining(b, fmt.Sprintf("nn-worker=1,dataloader=%d", replicas-1))
	j.env = []string{"PERSIA_CKPT_ROOT=" + filepath.Join(j.dir, "run")}
	nnWorker := j.start("nn-worker-0", `exec sleep 3600`)
	j.becomes("waiting")
	// A command that ends with its launcher, as in a container.
	const attached = `while kill -0 $PPID 2>/dev/null; do sleep 1; done`
	killed := j.start(fmt.Sprintf("dataloader-%d", replicas-2), attached)
	standIns := &standIns{address: "http://" + j.coordinator + "/report", attempt: 1}
	var running sync.WaitGroup
	stop := make(chan struct{})
	for index := range replicas - 2 {
		running.Go(func() { standIns.work(index, stop) })
	}
	defer running.Wait()
	defer close(stop)

	standIns.awaits(b, 1, replicas-2)
	killed.says("attempt 1: running")
	// Reports at the usual rate, with the peak of the start left out.
	time.Sleep(5 * time.Second)
	const measured = 20 * time.Second
	before, reports := cpuTime(b, nnWorker.process.Process.Pid), standIns.reset()
	time.Sleep(measured)
	used := cpuTime(b, nnWorker.process.Process.Pid) - before
	answers := standIns.reset()
	require.Empty(b, reports.errors, "no answer")
	require.Empty(b, answers.errors, "no answer")
	b.ReportMetric(float64(len(answers.times))/measured.Seconds(), "reports/s")
	b.ReportMetric(used.Seconds()/measured.Seconds(), "cores")
	b.ReportMetric(float64(answers.times[len(answers.times)*99/100].Microseconds())/1000, "ms/answer(p99)")

	lost := time.Now()
	require.NoError(b, killed.process.Process.Kill())
	killed.status()
	again := j.start(fmt.Sprintf("dataloader-%d", replicas-2), attached)
	standIns.awaits(b, 2, replicas-2)
	again.says("attempt 2: running")
	b.ReportMetric(time.Since(lost).Seconds(), "s/kill")
	b.ReportMetric(0, "ns/op")
}

// standIns are replicas that run nothing.
type standIns struct {
	address string

	lock    sync.Mutex
	attempt int
	started map[int]bool
	seen    answers
}

// answers are the answers of an interval.
type answers struct {
	times  []time.Duration
	errors []string
}

// work reports as launch.py does until the end.
func (s *standIns) work(index int, stop chan struct{}) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	attempt, state := 0, "waiting"
	// Not all replicas report at the same time.
	pause := time.Duration(index%100) * 50 * time.Millisecond
	for {
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		pause = 5 * time.Second
		order, err := s.report(client, index, attempt, state)
		switch {
		case err != nil:
		case order.Order == "stop" && state != "waiting":
			state, pause = "waiting", 0
		case order.Order == "start":
			attempt, state, pause = order.Attempt, "running", 0
			s.starts(index, attempt)
		}
	}
}

// order is the coordinator's answer.
type order struct {
	Order   string
	Attempt int
}

func (s *standIns) report(client *http.Client, index, attempt int, state string) (order, error) {
	body, err := json.Marshal(map[string]any{
		"role": "dataloader", "replica": index, "run": "", "pod": strconv.Itoa(index), "revision": "1", "instance": strconv.Itoa(index),
		"attempt": attempt, "state": state, "reason": "", "progress": nil, "blocked": "", "ending": false, "leaving": false, "done": false,
		"coordinator": strings.TrimPrefix(strings.TrimSuffix(s.address, "/report"), "http://"), "since": 0, "doubts": true, "hangs": "", "failed": "",
	})
	if err != nil {
		return order{}, err
	}
	asked := time.Now()
	request, err := http.NewRequest(http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return order{}, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(request)
	var told order
	if err == nil {
		err = json.NewDecoder(answer.Body).Decode(&told)
		_ = answer.Body.Close()
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if err != nil {
		s.seen.errors = append(s.seen.errors, err.Error())
	} else {
		s.seen.times = append(s.seen.times, time.Since(asked))
	}
	return told, err
}

// starts takes note of a replica that starts in an attempt.
func (s *standIns) starts(index, attempt int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if attempt != s.attempt || s.started == nil {
		s.attempt, s.started = attempt, map[int]bool{}
	}
	s.started[index] = true
}

// awaits waits until a number of replicas run in an attempt.
func (s *standIns) awaits(b *testing.B, attempt, replicas int) {
	b.Helper()
	var started int
	require.Eventually(b, func() bool {
		s.lock.Lock()
		defer s.lock.Unlock()
		started = len(s.started)
		return s.attempt == attempt && started == replicas
	}, 5*time.Minute, 10*time.Millisecond, "%d of %d replicas run in attempt %d", started, replicas, attempt)
}

// reset returns the answers since the last call, the fastest first.
func (s *standIns) reset() answers {
	s.lock.Lock()
	defer s.lock.Unlock()
	seen := s.seen
	s.seen = answers{}
	slices.Sort(seen.times)
	return seen
}

// cpuTime returns how long a process has used a core. Linux counts in hundredths of a second.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] {
		count, err := strconv.Atoi(field)
		require.NoError(b, err)
		ticks += count
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

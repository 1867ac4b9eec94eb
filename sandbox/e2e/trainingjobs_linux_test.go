package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/renameio/v2"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/internal/testkit"
	"persia/sandbox/process"
)

// The jobs of the scenarios train on as many clicks as the example, in fewer batches, and write a
// checkpoint whenever they have trained some more of them.
const (
	allBatches        = 420
	batchSize         = 768
	checkpointBatches = 60
	// lostBatches are trained after a checkpoint, and once more when an attempt ends.
	lostBatches = 20
	// stuckSeconds is how long a training may be stuck before its attempt ends. It is far more than
	// a busy machine takes to start one, and less than a test waits.
	stuckSeconds = 300
	// manyAttempts may fail, as replicas of a busy machine are heard of late. Only testFails counts them.
	manyAttempts = 100
	// lostSeconds is how long a replica may say nothing, natsSeconds may lack NATS: half of the default.
	lostSeconds = 30
	natsSeconds = 15
	// backoffSeconds is the pause after the first failure.
	backoffSeconds = 1
)

// arrivingJob returns the example's job whose data arrives as the test says, with another
// rule to learn, and with changes of its roles and settings.
func (r *training) arrivingJob(t *testing.T, name string, rule int, changes object) object {
	t.Helper()
	job := r.exampleJob(t)
	job["name"] = name
	job["persiaEnv"].(object)["PERSIA_DATALOADER_ENTRY"] = r.volume.script(t, "arriving.py")
	job["env"] = []object{
		{"name": "CLICKS_RULE", "value": strconv.Itoa(rule)},
		{"name": "CLICKS_BATCHES", "value": strconv.Itoa(allBatches)},
		{"name": "CLICKS_BATCH_SIZE", "value": strconv.Itoa(batchSize)},
		{"name": "CLICKS_CHECKPOINTS", "value": strconv.Itoa(allBatches / checkpointBatches)},
		{"name": "CLICKS_ARRIVED", "value": "/checkpoints/arrived/" + name},
		{"name": "CLICKS_STEPS_PER_DENSE_STATE", "value": "5"},
		{"name": "PERSIA_STUCK_SECONDS", "value": strconv.Itoa(stuckSeconds)},
		{"name": "PERSIA_ATTEMPTS", "value": strconv.Itoa(manyAttempts)},
		{"name": "PERSIA_LOST_SECONDS", "value": strconv.Itoa(lostSeconds)},
		{"name": "PERSIA_NATS_SECONDS", "value": strconv.Itoa(natsSeconds)},
		{"name": "PERSIA_BACKOFF_SECONDS", "value": strconv.Itoa(backoffSeconds)},
	}
	change(job, changes)
	r.volume.arrive(t, name, 0, 0)
	return job
}

// exampleJob returns a copy of the example's only job, which asks for less.
func (r *training) exampleJob(t *testing.T) object {
	t.Helper()
	text := testkit.Must(yaml.Marshal(r.example["config"].(object)["persia:jobs"]))(t)
	var jobs []object
	require.NoError(t, yaml.Unmarshal(text, &jobs))
	require.Len(t, jobs, 1)
	// Several of them fit next to each other on a machine with two CPUs.
	for _, role := range []string{"nnWorker", "dataloader", "embeddingWorker", "embeddingParameterServer"} {
		change(jobs[0], object{role: object{"resources": object{"requests": object{"cpu": "10m"}}}})
	}
	jobs[0]["enableMetrics"] = false
	if r.engine == config.EngineJobSet {
		jobs[0]["engine"] = "jobset"
	}
	return jobs[0]
}

// change merges changes into an object.
func change(in, changes object) {
	for key, value := range changes {
		inner, isObject := value.(object)
		if there, ok := in[key].(object); ok && isObject {
			change(there, inner)
		} else {
			in[key] = value
		}
	}
}

// upWith brings the stack up with jobs in place of the example's, and PERSIA's operator if one asks for it.
func (r *training) upWith(t *testing.T, jobs ...object) {
	t.Helper()
	stack := maps.Clone(r.example)
	stack["config"] = maps.Clone(r.example["config"].(object))
	stack["config"].(object)["persia:jobs"] = jobs
	if r.engine == config.EngineStatefulSet {
		stack["config"].(object)["persia:operator"] = object{"image": jobs[0]["nnWorker"].(object)["image"]}
	}
	r.write(t, stack)
	r.up(t)
}

// awaitCheckpoint waits for a complete checkpoint of so many batches, or more.
func (r *training) awaitCheckpoint(t *testing.T, job string, batches int) checkpoint {
	t.Helper()
	var newest checkpoint
	r.awaitTraining(t, job, func() bool {
		newest = r.volume.checkpoint(job, "1")
		return newest.batches >= batches
	}, "a checkpoint of %s after batch %d: %s", job, batches, &words{r, "persia", job + "-nn-worker-0"})
	return newest
}

var attemptStarts = regexp.MustCompile(`attempt (\d+) starts from (.*)`)

// awaitResumed waits for an attempt that begins from a checkpoint, or a newer one, which an
// attempt before it has written. It returns that checkpoint, with the number of the new attempt.
func (r *training) awaitResumed(t *testing.T, job string, from checkpoint) checkpoint {
	t.Helper()
	var resumed checkpoint
	r.awaitTraining(t, job, func() bool {
		for _, match := range attemptStarts.FindAllStringSubmatch(r.logs("persia", job+"-nn-worker-0"), -1) {
			if attempt, _ := strconv.Atoi(match[1]); attempt > from.attempt {
				resumed = checkpoint{folder: match[2], attempt: attempt}
				return true
			}
		}
		return false
	}, "an attempt of %s after %d: %s", job, from.attempt, &words{r, "persia", job + "-nn-worker-0"})
	// Some more batches may have come.
	match := checkpointFolder.FindStringSubmatch(resumed.folder)
	require.NotNil(t, match, "the checkpoint that it starts from: %s", resumed.folder)
	resumed.batches, _ = strconv.Atoi(match[2])
	require.GreaterOrEqual(t, resumed.batches, from.batches, resumed.folder)
	return resumed
}

// killProcess kills the process of a pod whose command line has some text in it, as the
// kernel does when memory runs out. With the text launch.py the container ends with it.
func (r *training) killProcess(t *testing.T, pod, text string) {
	t.Helper()
	var running []process.Process
	await(t, func() bool {
		running = r.processes(t, r.pod(t, pod).UID, text)
		return len(running) > 0
	}, "%s in %s", text, pod)
	for _, p := range running {
		require.NoError(t, syscall.Kill(p.PID, syscall.SIGKILL))
	}
}

// processes returns the processes of a pod whose command lines have some text in them.
func (r *training) processes(t *testing.T, pod types.UID, text string) []process.Process {
	t.Helper()
	running, err := process.Matching(func(p process.Process) bool {
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
		return err == nil && strings.Contains(string(groups), "pod"+string(pod)) && strings.Contains(p.Command, text)
	})
	require.NoError(t, err)
	return running
}

// deletePods deletes pods without a word to what runs in them, as when a node is lost.
func (r *training) deletePods(t *testing.T, pods ...corev1.Pod) {
	t.Helper()
	require.NotEmpty(t, pods)
	for _, pod := range pods {
		require.NoError(t, r.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	}
}

// pod returns a replica of a job, named as with a StatefulSet.
func (r *training) pod(t *testing.T, name string) corev1.Pod {
	t.Helper()
	return *testkit.Must(r.CoreV1().Pods("persia").Get(t.Context(), r.nameOf("persia", name), metav1.GetOptions{}))(t)
}

// checkpointVolume is the volume of the trainings, a folder of the host.
type checkpointVolume string

// inPod returns the path in the pods of a file in the volume.
func (v checkpointVolume) inPod(path string) string {
	return "/checkpoints" + strings.TrimPrefix(path, string(v))
}

// script puts a script of testdata into the volume of the jobs, and returns its path in their pods.
func (v checkpointVolume) script(t *testing.T, name string) string {
	t.Helper()
	return v.put(t, "scripts/"+name, testkit.Read(t, filepath.Join("testdata", "training", name)))
}

// put writes a file of the volume, at once, and returns its path in the pods.
func (v checkpointVolume) put(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(string(v), name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, renameio.WriteFile(file, []byte(content), 0o644))
	return v.inPod(file)
}

// arrive lets the first batches of a job be there, and some more come slowly.
func (v checkpointVolume) arrive(t *testing.T, job string, there, coming int) {
	t.Helper()
	v.put(t, "arrived/"+job, fmt.Sprintf("%d %d\n", there, max(there, coming)))
}

// checkpoint is a complete one.
type checkpoint struct {
	folder           string
	attempt, batches int
}

var checkpointFolder = regexp.MustCompile(`/attempt-(\d+)/batch-(\d+)$`)

// checkpoint returns the newest complete one of a run in the claimed volume, which is a folder of the host.
func (v checkpointVolume) checkpoint(job, run string) checkpoint {
	marks, _ := filepath.Glob(filepath.Join(string(v), job, run, "attempt-*", "batch-*", "opt.pt"))
	var newest checkpoint
	for _, mark := range marks {
		folder := filepath.Dir(mark)
		match := checkpointFolder.FindStringSubmatch(folder)
		if _, err := os.Stat(filepath.Join(folder, "embedding_dump_done")); err != nil || match == nil {
			continue
		}
		attempt, _ := strconv.Atoi(match[1])
		batches, _ := strconv.Atoi(match[2])
		if batches > newest.batches {
			newest = checkpoint{folder, attempt, batches}
		}
	}
	return newest
}

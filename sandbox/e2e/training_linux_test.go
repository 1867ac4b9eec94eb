package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/internal/testkit"
	"persia/sandbox"
	"persia/sandbox/images"
	"persia/sandbox/node"
	"persia/sandbox/toolchain"
)

// trainingPatience bounds each wait for a training. An attempt takes half a minute on
// an idle machine, and several times as long while other tests run.
const trainingPatience = 8 * time.Minute

// logsPatience bounds each look at a log.
const logsPatience = 30 * time.Second

// awaitTraining is [await] for what comes by a training that goes on.
func (r *training) awaitTraining(t *testing.T, job string, condition func() bool, message string, arguments ...any) {
	t.Helper()
	over := func() string {
		if end := r.endOf(t, job); end != "" {
			return fmt.Sprintf("the training %s is over: %s", job, end)
		}
		return ""
	}
	awaitUnless(t, trainingPatience, over, condition, message, arguments...)
}

// endOf returns how a training has ended, or nothing.
func (r *training) endOf(t *testing.T, job string) batchv1.JobConditionType {
	t.Helper()
	jobs, err := r.BatchV1().Jobs("persia").List(t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=completion,persia_job=" + job,
	})
	// The one of the job as it was before goes last.
	if err != nil || len(jobs.Items) != 1 {
		return ""
	}
	return endOf(&jobs.Items[0])
}

// training is the stack of examples/Pulumi.train.yaml with other jobs, on a real node.
type training struct {
	cluster
	// dir is the sandbox's folder, and stacks the folder of the stack file.
	dir     string
	stacks  string
	volume  checkpointVolume
	example object
	// engine creates the pods of the scenarios' jobs.
	engine config.Engine
}

// trainingImages compiles the programs of a real node, and makes the images of its pods
// in a folder. Where that cannot be, the test is skipped.
func trainingImages(t *testing.T) (compiled toolchain.Tools, archives string) {
	t.Helper()
	needNode(t)
	// All trainings share the images.
	buildingImages.Lock()
	defer buildingImages.Unlock()
	// All trainings have the same images: a machine starts again when there is another one.
	compiled = compile(t, toolchain.OfPods, toolchain.OfNode, toolchain.OfJobSetImage)
	archives = testkit.Must(filepath.Abs(filepath.Join(repository, ".sandbox", "images")))(t)
	err := images.Build(t.Context(), images.Args{Repository: repository, Dir: archives, Tools: compiled, JobSet: true, Progress: t.Output()})
	if errors.Is(err, images.ErrNoPython) {
		testkit.Skip(t, err)
	}
	require.NoError(t, err)
	return compiled, archives
}

var buildingImages sync.Mutex

// newTraining makes the sandbox of a training with an engine. Nothing of it is up yet.
func newTraining(t *testing.T, engine config.Engine) *training {
	t.Helper()
	dir := t.TempDir()
	r := &training{dir: dir, stacks: t.TempDir(), volume: checkpointVolume(filepath.Join(dir, "storage", "node", "checkpoints")), engine: engine}
	r.create(t, "")
	return r
}

// create makes the sandbox of the example, with the address of a server of buckets, if any.
func (r *training) create(t *testing.T, buckets string) {
	t.Helper()
	text := testkit.Must(os.ReadFile(filepath.Join(repository, "examples", "Pulumi.train.yaml")))(t)
	require.NoError(t, yaml.Unmarshal(text, &r.example))
	r.write(t, r.example)
	r.open(t, "train", buckets)
}

// open makes the sandbox of a stack in the folder of the stack file.
func (r *training) open(t *testing.T, stack, buckets string) {
	t.Helper()
	compiled, archives := trainingImages(t)
	s, err := sandbox.New(sandbox.Options{
		Project: repository, Stacks: r.stacks, Stack: stack, Dir: r.dir,
		Tools: compiled, Executable: executable,
		Real: sandbox.RealNode{Pool: "system", Images: archives, Buckets: buckets},
		Out:  t.Output(),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			logFiles(t, filepath.Join(r.dir, stack, "node", "node.log"))
			logFiles(t, filepath.Join(r.dir, stack, "node", "*", "root", "var", "log", "gcsfuse.log"))
			logFiles(t, filepath.Join(r.dir, stack, "node", "*", "root", "var", "log", "pods", "*", "*", "*.log"))
		}
		assert.NoError(t, s.Down(context.Background()))
	})
	r.cluster = cluster{t: t, s: s}
}

// write writes the stack file.
func (r *training) write(t *testing.T, stack object) {
	t.Helper()
	text := testkit.Must(yaml.Marshal(stack))(t)
	require.NoError(t, os.WriteFile(filepath.Join(r.stacks, "Pulumi.train.yaml"), text, 0o600))
}

// up brings the stack up.
func (r *training) up(t *testing.T) {
	t.Helper()
	testkit.Must(r.s.Up(t.Context()))(t)
	// Other subtests read it, too, so it belongs to the test that all of them are of.
	r.cluster = newCluster(r.t, r.s)
}

// await waits for the end of a job, and returns whether it completed or failed.
func (r *training) await(t *testing.T, job string) batchv1.JobConditionType {
	t.Helper()
	var end batchv1.JobConditionType
	awaitUnless(t, trainingPatience, nothingLost, func() bool {
		end = r.endOf(t, job)
		return end != ""
	}, "%s ends: %s", job, &words{r, "persia", job + "-nn-worker-0"})
	return end
}

// words are the last ones of a pod, looked up when a test has failed.
type words struct {
	r              *training
	namespace, pod string
}

func (w *words) String() string {
	lines := strings.Split(w.r.logs(w.namespace, w.pod), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

func (r *training) logs(namespace, pod string) string {
	// The node of the pod may be lost, and never answer.
	ctx, cancel := context.WithTimeout(context.Background(), logsPatience)
	defer cancel()
	stream, err := r.CoreV1().Pods(namespace).GetLogs(r.nameOf(namespace, pod), &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = stream.Close() }()
	text, err := io.ReadAll(stream)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// assertTrained checks that a job is complete, has learned its rule, and has
// trained on every batch once: the nn-workers' own words, and their last checkpoint's.
func (r *training) assertTrained(t *testing.T, job, run string, batches int) {
	t.Helper()
	require.Equal(t, batchv1.JobComplete, r.await(t, job), "%s", &words{r, "persia", job + "-nn-worker-0"})
	log := r.logs("persia", job+"-nn-worker-0")
	found := regexp.MustCompile(`(?m)^RESULT (.*)$`).FindAllStringSubmatch(log, -1)
	require.NotEmpty(t, found, "the result in the log of nn-worker 0:\n%s", log)
	var result struct {
		Trained int     `json:"trained_batches"`
		AUC     float64 `json:"auc"`
		Best    float64 `json:"best_auc"`
	}
	require.NoError(t, json.Unmarshal([]byte(found[len(found)-1][1]), &result))
	assert.Equal(t, batches, result.Trained)
	assert.Greater(t, result.Best, 0.8, "the rule can be learned")
	assert.GreaterOrEqual(t, result.AUC, result.Best-0.01)

	last := r.volume.checkpoint(job, run)
	assert.Equal(t, batches, last.batches)
	text := testkit.Must(os.ReadFile(filepath.Join(last.folder, "progress.json")))(t)
	var progress struct{ Trained []int }
	require.NoError(t, json.Unmarshal(text, &progress))
	seen := map[int]bool{}
	for _, number := range progress.Trained {
		seen[number] = true
	}
	assert.Len(t, seen, batches, "batches in the last checkpoint")
}

// needNode skips a test where no node can run.
func needNode(t *testing.T) {
	t.Helper()
	if err := node.Missing(); err != nil {
		testkit.Skip(t, err)
	}
}

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/internal/testkit"
)

const (
	// shopBatches is the number of batches in generate.py's files, and shopCheckpoint the number
	// at which two nn-workers write the first checkpoint.
	shopBatches    = 200
	shopCheckpoint = 100
)

// TestShop follows docs/start/your-own-model.md on a real node: the job waits for code and data,
// trains, loses an nn-worker, resumes, and exports a model that predicts without PERSIA, and once more when it is complete.
func TestShop(t *testing.T) {
	nightly(t)
	t.Parallel()
	dir := t.TempDir()
	r := &training{dir: dir, stacks: t.TempDir(), volume: checkpointVolume(filepath.Join(dir, "storage", "node", "checkpoints"))}
	stack := testkit.Read(t, filepath.Join(examples, "Pulumi.shop.yaml"))
	file := filepath.Join(r.stacks, "Pulumi.shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte(stack), 0o600))
	r.open(t, "shop", "")
	r.up(t)

	r.awaitStatus(t, "shop", "PERSIA_GLOBAL_CONFIG names /checkpoints/code/global_config.yml, which is not there")
	r.uploadShop(t)
	first := r.awaitCheckpoint(t, "shop", shopCheckpoint)
	r.killProcess(t, "shop-nn-worker-1", "-u /checkpoints/code/train.py")
	r.awaitResumed(t, "shop", first)

	require.Equal(t, batchv1.JobComplete, r.await(t, "shop"), "%s", &words{r, "persia", "shop-nn-worker-0"})
	log := r.logs("persia", "shop-nn-worker-0")
	found := regexp.MustCompile(`(?m)^RESULT (.*)$`).FindStringSubmatch(log)
	require.NotNil(t, found, "the result in the log of nn-worker 0:\n%s", log)
	var result struct {
		Trained int     `json:"trained_batches"`
		AUC     float64 `json:"auc"`
		Best    float64 `json:"best_auc"`
	}
	require.NoError(t, json.Unmarshal([]byte(found[1]), &result))
	assert.Equal(t, shopBatches, result.Trained, "batches are neither repeated nor lost")
	last := r.volume.checkpoint("shop", "1")
	assert.Equal(t, shopBatches, last.batches)
	assert.Greater(t, last.attempt, first.attempt)
	r.assertServes(t, r.volume.inPod(filepath.Join(filepath.Dir(last.folder), "export")), result.AUC)

	// Another run, which has the last checkpoint, only exports.
	run := filepath.Join(string(r.volume), "shop", "export")
	require.NoError(t, os.CopyFS(filepath.Join(run, "attempt-1", filepath.Base(last.folder)), os.DirFS(last.folder)))
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(stack, "- name: shop\n", "- name: shop\n      runId: export\n", 1)), 0o600))
	r.up(t)
	require.Equal(t, batchv1.JobComplete, r.await(t, "shop"), "%s", &words{r, "persia", "shop-nn-worker-0"})
	r.assertServes(t, r.volume.inPod(filepath.Join(run, "attempt-2", "export")), result.AUC)
}

// uploadShop generates the data, and copies the code, as the page says.
func (r *training) uploadShop(t *testing.T) {
	t.Helper()
	example := filepath.Join(repository, "examples", "shop")
	output, err := exec.CommandContext(t.Context(), "python3", filepath.Join(example, "generate.py"), filepath.Join(string(r.volume), "data")).CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.NoError(t, os.CopyFS(filepath.Join(string(r.volume), "code"), os.DirFS(example)))
}

var served = regexp.MustCompile(`10240 predictions, AUC ([0-9.]+), at most [0-9.]+ away from the training's own`)

// assertServes: an exported model predicts as well in a pod in which PERSIA cannot be imported.
func (r *training) assertServes(t *testing.T, export string, auc float64) {
	t.Helper()
	const script = `import runpy, sys
sys.modules["persia"] = None
sys.path.insert(0, "/checkpoints/code")
runpy.run_path("/checkpoints/code/serve.py", run_name="__main__")`
	volume := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "checkpoints-claim"}}
	pod, err := r.CoreV1().Pods("persia").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "serve-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Volumes:       []corev1.Volume{{Name: "checkpoints", VolumeSource: volume}},
			Containers: []corev1.Container{{
				Name: "serve", Image: "persia/training:0.1.dev251", Command: []string{"python3", "-c", script, export},
				Env:          []corev1.EnvVar{{Name: "SHOP_DATA", Value: "/checkpoints/data"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "checkpoints", MountPath: "/checkpoints"}},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	var phase corev1.PodPhase
	await(t, func() bool {
		now, err := r.CoreV1().Pods("persia").Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err == nil {
			phase = now.Status.Phase
		}
		return phase == corev1.PodSucceeded || phase == corev1.PodFailed
	}, "serve.py ends")
	said := r.logs("persia", pod.Name)
	// A pod keeps the volume that it mounts from being deleted.
	require.NoError(t, r.CoreV1().Pods("persia").Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	require.Equal(t, corev1.PodSucceeded, phase, said)
	found := served.FindStringSubmatch(said)
	require.NotNil(t, found, said)
	assert.InDelta(t, auc, testkit.Must(strconv.ParseFloat(found[1], 64))(t), 0.005)
}

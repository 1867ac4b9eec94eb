package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// upstream is the job of PERSIA's operator.
const upstream = "upstream"

// testOperator: PERSIA's own operator, from PERSIA's package, makes the pods of the same
// training, and its end is seen: that of a training that succeeds, and that of another
// which fails, and which has no metrics.
func (r *training) testOperator(t *testing.T) {
	configuration := r.example["config"].(object)
	before := maps.Clone(configuration)
	t.Cleanup(func() {
		r.example["config"] = before
		r.write(t, r.example)
	})
	// The pods of the other job make room. It keeps its NATS, and this one has its own.
	example := configuration["persia:jobs"].([]any)[0].(object)
	stopped, job := maps.Clone(example), maps.Clone(example)
	stopped["suspend"] = true
	maps.Copy(job, object{"name": upstream, "engine": "operator", "nats": object{"size": 1}})
	configuration["persia:jobs"] = []any{stopped, job}
	configuration["persia:operator"] = object{"image": example["nnWorker"].(object)["image"]}

	attempt := func(t *testing.T, number int, more ...object) {
		t.Helper()
		checkpoints := fmt.Sprintf("/checkpoints/%s/1/attempt-%d", upstream, number)
		job["env"] = append([]object{{"name": "PERSIA_CKPT_DIR", "value": checkpoints}}, more...)
		r.write(t, r.example)
		r.up(t)
	}
	attempt(t, 1)
	r.assertOperator(t)
	r.assertTrained(t, upstream, "1", 600)
	r.assertPushed(t)

	t.Run("a job that fails, without metrics", func(t *testing.T) {
		job["enableMetrics"] = false
		// No model is that good.
		attempt(t, 2, object{"name": "CLICKS_AUC_MARGIN", "value": "-1"})
		assert.Equal(t, batchv1.JobFailed, r.await(t, upstream))
		_, err := r.CoreV1().Services("persia").Get(t.Context(), upstream+"-metrics-gateway-service", metav1.GetOptions{})
		assert.ErrorContains(t, err, "not found")
	})
}

// assertOperator sees to it that the operator and the pods that it has made really run,
// and with no rights but those that they need.
func (r *training) assertOperator(t *testing.T) {
	t.Helper()
	operator := r.pods("persia-operator", "app.kubernetes.io/name=persia-operator")
	r.assertReal(t, 1, operator)
	container := operator[0].Spec.Containers[0].SecurityContext
	assert.True(t, *operator[0].Spec.SecurityContext.RunAsNonRoot)
	assert.True(t, *container.ReadOnlyRootFilesystem)
	assert.Equal(t, "ALL", string(container.Capabilities.Drop[0]))
	require.Eventually(t, func() bool {
		return strings.Contains(r.logs("persia-operator", operator[0].Name), "Creating PersiaJob: "+upstream)
	}, nodePatience, time.Second, "the operator creates the job: %s", &words{r, "persia-operator", operator[0].Name})

	const count = 2 + 2 + 2 + 3 + 1
	require.Eventually(t, func() bool {
		return len(r.pods("persia", "persia_job="+upstream)) == count
	}, nodePatience, time.Second, "%d pods", count)
	for _, pod := range r.pods("persia", "persia_job="+upstream) {
		assert.Empty(t, pod.OwnerReferences, "%s: the operator makes pods, and nothing else", pod.Name)
		for _, volume := range pod.Spec.Volumes {
			assert.Nil(t, volume.Projected, "%s has a token", pod.Name)
		}
	}
}

var pushed = regexp.MustCompile(`(?m)^persia_replica_finished\{.*replica="(\d)".*role="([a-z-]+)".*\} 1$`)

// assertPushed sees to it that trainers and data loaders have told the gateway of their end.
func (r *training) assertPushed(t *testing.T) {
	t.Helper()
	var text []byte
	found := map[string]bool{}
	require.Eventually(t, func() bool {
		var err error
		text, err = r.CoreV1().Services("persia").ProxyGet("http", upstream+"-metrics-gateway-service", "9091", "/metrics", nil).DoRaw(t.Context())
		for _, match := range pushed.FindAllStringSubmatch(string(text), -1) {
			found[match[2]+"-"+match[1]] = true
		}
		return err == nil && len(found) == 4
	}, nodePatience, time.Second, "four replicas have finished: %s", &text)
	assert.Equal(t, map[string]bool{"nn-worker-0": true, "nn-worker-1": true, "dataloader-0": true, "dataloader-1": true}, found)
	assert.Contains(t, string(text), "lookup_total_time_cost_sec", "PERSIA's own")
}

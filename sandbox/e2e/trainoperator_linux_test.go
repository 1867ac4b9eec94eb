package e2e

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// upstream is the job of PERSIA's operator.
const upstream = "upstream"

// operatorJob returns the example's job with NATS of its own, and with the engine operator.
func (r *training) operatorJob(t *testing.T) object {
	t.Helper()
	job := r.exampleJob(t)
	maps.Copy(job, object{
		"name": upstream, "engine": "operator", "nats": object{"size": 1}, "enableMetrics": true,
		"env": []object{{"name": "PERSIA_CKPT_DIR", "value": "/checkpoints/" + upstream + "/1/attempt-1"}},
	})
	return job
}

// testOperator: PERSIA's own operator, from PERSIA's package, makes the pods of the same
// training, with no rights but those that it needs, and its end is seen.
func (r *training) testOperator(t *testing.T) {
	operator := r.pods("persia-operator", "app.kubernetes.io/name=persia-operator")
	require.Len(t, operator, 1)
	container := operator[0].Spec.Containers[0].SecurityContext
	assert.True(t, *operator[0].Spec.SecurityContext.RunAsNonRoot)
	assert.True(t, *container.ReadOnlyRootFilesystem)
	assert.Equal(t, "ALL", string(container.Capabilities.Drop[0]))
	await(t, func() bool {
		return strings.Contains(r.logs("persia-operator", operator[0].Name), "Creating PersiaJob: "+upstream)
	}, "the operator creates the job: %s", &words{r, "persia-operator", operator[0].Name})

	const count = 2 + 2 + 2 + 3 + 1
	await(t, func() bool {
		return len(r.pods("persia", "persia_job="+upstream)) == count
	}, "%d pods", count)
	for _, pod := range r.pods("persia", "persia_job="+upstream) {
		assert.Empty(t, pod.OwnerReferences, "%s: the operator makes pods, and nothing else", pod.Name)
		for _, volume := range pod.Spec.Volumes {
			assert.Nil(t, volume.Projected, "%s has a token", pod.Name)
		}
	}
	r.assertTrained(t, upstream, "1", 600)
}

package status

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRequested(t *testing.T) {
	accepted := condition("Accepted", "True", "accepted")
	for name, c := range map[string]struct {
		conditions []any
		says       string
	}{
		"new":       {nil, "GKE has not looked at the request yet"},
		"accepted":  {[]any{accepted, condition("Provisioned", "False", "soon")}, "GKE waits until it has all nodes at once: accepted"},
		"there":     {[]any{accepted, condition("Provisioned", "True", "done")}, "the nodes are there: done"},
		"given up":  {[]any{accepted, condition("Failed", "True", "no machines")}, "GKE has given up, and is asked again: no machines"},
		"not used":  {[]any{accepted, condition("Provisioned", "True", "done"), condition("BookingExpired", "True", "late")}, "the nn-workers have not used the nodes in time, and GKE is asked again: late"},
		"taken off": {[]any{accepted, condition("Provisioned", "True", "done"), condition("CapacityRevoked", "True", "seven days")}, "GKE has taken the nodes back, and is asked again: seven days"},
	} {
		t.Run(name, func(t *testing.T) {
			client := inCluster(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
				"metadata": map[string]any{"namespace": "persia", "name": "feed"},
				"status":   map[string]any{"conditions": c.conditions},
			}})
			wait, found, err := requested(t.Context(), client, "persia", "feed")
			require.NoError(t, err)
			assert.True(t, found)
			assert.Equal(t, Wait{Pod: "feed", Why: Why{"nodes", c.says, "kubectl -n persia describe provisioningrequest feed"}}, wait)
		})
	}
	_, found, err := requested(t.Context(), inCluster(), "persia", "feed")
	require.NoError(t, err)
	assert.False(t, found, "a job on other pools")
}

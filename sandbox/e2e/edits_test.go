package e2e

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEdits edits a running job on nodes that hold it once: the program refuses an edit, or `up` finishes it.
// All pods of a node may be evicted at once, as an upgrade does.
func TestEdits(t *testing.T) {
	t.Parallel()
	train := job("train", object{"nnWorker": gpuRole("gpu", 2, "4", "8Gi", 1), "embeddingParameterServer": role("servers", 4, "3", "8Gi")})
	train["mounts"] = mounts("bucket", "/bucket", "share", "/share")
	stack := newStorageStack(t, []object{
		volume("bucket", "gcsFuse", object{"bucket": "madeup-checkpoints", "create": object{}, "sidecar": object{"ephemeralStorage": "1Gi"}}),
		volume("share", "nfs", object{"server": "10.0.0.9", "path": "/exports"}),
	}, train)
	stack.configuration["persia:nodePools"] = append(stack.configuration["persia:nodePools"].([]object),
		object{"name": "gpu", "machineType": "g2-standard-8", "nodes": 2, "gpu": object{"type": "nvidia-l4", "count": 1}},
		object{"name": "servers", "machineType": "n2-standard-8", "nodes": 2})
	stack.write()
	s, printed := stack.sandbox(t.TempDir())
	require.NoError(t, s.Apply(t.Context()))
	c := newCluster(t, s)
	for _, pod := range c.podsOfRole("train", "embedding-ps") {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		assert.NoError(t, c.CoreV1().Pods(pod.Namespace).EvictV1(t.Context(), eviction))
	}
	// edited is the configuration with its only job, its volumes, and its pools.
	type edited struct {
		all, job       object
		volumes, pools []any
	}
	of := func(value any) object { return value.(object) }
	for _, edit := range []struct {
		name    string
		edit    func(edited)
		refused string
	}{
		{"another NFS server", func(e edited) { of(of(e.volumes[1])["nfs"])["server"] = "10.0.0.8" }, "Kubernetes cannot change where the volume share is"},
		{"another NFS server of a renamed volume", func(e edited) {
			of(of(e.volumes[1])["nfs"])["server"], of(e.volumes[1])["name"] = "10.0.0.8", "other"
			e.job["mounts"] = mounts("bucket", "/bucket", "other", "/share")
		}, ""},
		{"a folder of the bucket", func(e edited) { of(e.volumes[0])["mountOptions"] = []string{"only-dir=second"} }, ""},
		{"labels of a volume", func(e edited) { of(e.volumes[1])["labels"] = object{"team": "ads"} }, ""},
		{"another claim", func(e edited) { of(e.volumes[1])["claim"] = "another" }, "the volume other has the claim other-claim in the cluster"},
		{"fewer servers, which are larger", func(e edited) { e.job["embeddingParameterServer"] = role("servers", 2, "6", "16Gi") }, ""},
		{"more servers, which are smaller", func(e edited) { e.job["embeddingParameterServer"] = role("servers", 4, "3", "8Gi") },
			"the new replicas do not fit on the pool servers beside the 2 old ones"},
		{"smaller servers", func(e edited) { e.job["embeddingParameterServer"] = role("servers", 2, "3", "8Gi") }, ""},
		{"more servers", func(e edited) { e.job["embeddingParameterServer"] = role("servers", 4, "3", "8Gi") }, ""},
		{"roles that change places", func(e edited) {
			e.job["embeddingParameterServer"], e.job["dataloader"] = role("rest", 1, "2", "4Gi"), role("servers", 4, "3", "8Gi")
		}, ""},
		{"a renamed pool", func(e edited) {
			of(e.pools[1])["name"], e.job["nnWorker"] = "gpus", gpuRole("gpus", 2, "4", "8Gi", 1)
		}, ""},
		{"another name of NATS", func(e edited) { of(e.all["persia:nats"])["name"] = "other-nats" }, ""},
		{"metrics", func(e edited) { e.job["enableMetrics"] = true }, ""},
		{"a renamed job", func(e edited) { e.job["name"] = "other" }, "the job other does not fit on the pool gpus beside the job train"},
		{"a queue", func(e edited) {
			e.all["persia:queue"] = object{"teams": []object{{"name": "ads"}}}
			e.job["engine"], e.job["queue"] = "jobset", "ads"
		}, "the job train has engine: statefulset in the cluster"},
	} {
		t.Run(edit.name, func(t *testing.T) {
			before := stack.configuration
			text, err := json.Marshal(before)
			require.NoError(t, err)
			var now object
			require.NoError(t, json.Unmarshal(text, &now))
			edit.edit(edited{now, of(now["persia:jobs"].([]any)[0]), now["persia:storage"].([]any), now["persia:nodePools"].([]any)})
			stack.configuration = now
			stack.write()
			printed.reset()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			err = s.Apply(ctx)
			if edit.refused != "" {
				require.Error(t, err)
				require.Contains(t, printed.String(), edit.refused)
			}
			if edit.refused != "" || !assert.NoError(t, err) {
				stack.configuration = before
			}
		})
	}
}

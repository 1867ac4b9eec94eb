package tests

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

// loadStack reads the values of a stack file in a folder of the repository.
func loadStack(configuration map[string]string, folder string) (*config.Stack, error) {
	return config.Load(func(key string) (string, bool) {
		value, ok := configuration[key]
		return value, ok
	}, os.DirFS(filepath.Join(root, folder)))
}

// TestPlanCountsWhatIsRegistered compares the plan with the objects: a pod that the
// plan does not know of takes room that the plan has given away.
func TestPlanCountsWhatIsRegistered(t *testing.T) {
	for _, path := range []string{"Pulumi.dev.yaml", "Pulumi.prod.yaml"} {
		t.Run(path, func(t *testing.T) {
			loaded := testkit.Must(loadStack(programtest.ReadStack(t, path), "."))(t)
			planned := map[string]capacity.Resources{}
			for _, pool := range loaded.Plan().Pools {
				planned[pool.Name] = pool.Used
				if pool.Name == loaded.SystemPoolName() {
					agents := capacity.ClusterAgents
					planned[pool.Name] = pool.Used.Minus(agents.Requests.Times(agents.Count))
				}
			}
			assert.Equal(t, planned, registeredRequests(t, programtest.DeployFile(t, path)))
		})
	}
}

// registeredRequests returns the requests of the pods of all registered objects, by node pool.
func registeredRequests(t *testing.T, recorder *testkit.Recorder) map[string]capacity.Resources {
	t.Helper()
	total := map[string]capacity.Resources{}
	add := func(nodeSelector map[string]string, resources corev1.ResourceRequirements, count int32) {
		pool := nodeSelector["cloud.google.com/gke-nodepool"]
		require.NotEmpty(t, pool)
		amount := func(name corev1.ResourceName) int64 {
			q, ok := resources.Requests[name]
			if !ok {
				q = resources.Limits[name]
			}
			if name == corev1.ResourceCPU {
				return q.MilliValue()
			}
			return q.Value()
		}
		total[pool] = total[pool].Plus(capacity.Resources{
			MilliCPU: amount(corev1.ResourceCPU), MemoryBytes: amount(corev1.ResourceMemory), GPUs: amount("nvidia.com/gpu"), Pods: 1,
			EphemeralBytes: amount(corev1.ResourceEphemeralStorage),
		}.Times(int(count)))
	}
	templates := templates(t, recorder)
	for _, registration := range recorder.Resources {
		if template, ok := templates[registration.URN]; ok && !slices.Contains([]string{testkit.DaemonSet, testkit.NATSCluster}, registration.TypeToken) {
			replicas, _ := testkit.Found(t, registration, "spec.replicas").(float64)
			add(template.Spec.NodeSelector, withSidecar(t, template), max(1, int32(replicas)))
		}
	}
	for _, registration := range recorder.All(t, testkit.NATSCluster) {
		pod := testkit.Part[struct {
			NodeSelector map[string]string
			Resources    corev1.ResourceRequirements
		}](t, registration, "spec.pod")
		add(pod.NodeSelector, pod.Resources, testkit.Part[int32](t, registration, "spec.size"))
	}
	return total
}

// withSidecar returns the requests of a pod with the container that GKE adds to mount buckets.
func withSidecar(t *testing.T, pod corev1.PodTemplateSpec) corev1.ResourceRequirements {
	t.Helper()
	own := pod.Spec.Containers[0].Resources
	if pod.Annotations["gke-gcsfuse/volumes"] != "true" {
		return own
	}
	whole := own.Limits.DeepCopy()
	maps.Copy(whole, own.Requests)
	for name, annotation := range map[corev1.ResourceName]string{
		corev1.ResourceCPU:              "gke-gcsfuse/cpu-request",
		corev1.ResourceMemory:           "gke-gcsfuse/memory-request",
		corev1.ResourceEphemeralStorage: "gke-gcsfuse/ephemeral-storage-request",
	} {
		amount, err := resource.ParseQuantity(pod.Annotations[annotation])
		require.NoError(t, err, annotation)
		sum := whole[name]
		sum.Add(amount)
		whole[name] = sum
	}
	return corev1.ResourceRequirements{Requests: whole}
}

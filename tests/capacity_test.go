package tests

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

func loadStack(t *testing.T, configuration map[string]string) (*config.Stack, error) {
	t.Helper()
	return config.Load(func(key string) (string, bool) {
		value, ok := configuration[key]
		return value, ok
	}, nil)
}

// TestPublishedDeploymentFits checks the plan that the program prints for prod.
func TestPublishedDeploymentFits(t *testing.T) {
	prod, err := loadStack(t, programtest.ReadStack(t, "prod"))
	require.NoError(t, err)
	plan := prod.Plan()
	got := map[string]string{}
	for _, pool := range plan.Pools[1:] {
		require.Len(t, pool.Pods, 1, pool.Name)
		got[pool.Name] = fmt.Sprintf("%d × %d %s", pool.Needed, pool.Holds(pool.Pods[0]), pool.Pods[0].Name)
	}
	assert.Equal(t, map[string]string{
		"nn-workers":        "8 × 1 nnWorker of criteo",
		"dataloaders":       "13 × 19 dataloader of criteo",
		"embedding-workers": "100 × 1 embeddingWorker of criteo",
		"embedding-ps":      "30 × 4 embeddingParameterServer of criteo",
		"nats":              "9 × 7 NATS server",
	}, got)
	assert.Regexp(t, `embedding-ps +120 +4 +embeddingParameterServer of criteo`, plan.String())
	for _, text := range []string{
		"30 of 30", "m2-ultramem-416",
		"M2_CPUS", "12480", "NVIDIA_A100_GPUS", "us-central1",
	} {
		assert.Contains(t, plan.String(), text)
	}
}

// TestPublishedDeploymentDoesNotFit takes something from prod: each line of the error says what is
// missing and the remedy, and the program registers nothing.
func TestPublishedDeploymentDoesNotFit(t *testing.T) {
	cases := map[string]struct {
		change func(pools any)
		says   string
	}{
		"29 nodes for 120 embedding parameter servers": {
			func(pools any) { programtest.Pool(pools, "embedding-ps")["nodes"] = 29 },
			"persia:nodePools[3].nodes: Invalid value: 29: 29 nodes of m2-ultramem-416 hold 116 of 120 × embeddingParameterServer of criteo, 4 per node by ephemeral storage, and 4 do not fit; write 30",
		},
		"nn-workers on machines of 624 GiB": {
			func(pools any) {
				nnWorkers := programtest.Pool(pools, "nn-workers")
				nnWorkers["machineType"] = "n1-highmem-96"
				nnWorkers["gpu"] = map[string]any{"type": "nvidia-tesla-v100", "count": 8}
			},
			`"600Gi": nnWorker does not fit on a node of pool "nn-workers": of n1-highmem-96, GKE and the pods on every node leave 593.7Gi; request less, or choose a machine type that holds it, like a2-highgpu-8g`,
		},
		"embedding parameter servers on machines of half the memory": {
			func(pools any) { programtest.Pool(pools, "embedding-ps")["machineType"] = "m1-ultramem-80" },
			"like m4-ultramem-112, m4-megamem-224 or c3d-highmem-360",
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "prod")
			programtest.Edit(t, configuration, "persia:nodePools", test.change)
			recorder, err := programtest.Deploy(t, configuration)
			require.ErrorContains(t, err, test.says)
			assert.Empty(t, recorder.URNs())
		})
	}
}

// TestPlanCountsWhatIsRegistered compares the plan with the objects: a pod that the
// plan does not know of takes room that the plan has given away.
func TestPlanCountsWhatIsRegistered(t *testing.T) {
	for _, name := range []string{"dev", "prod"} {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, name)
			loaded, err := loadStack(t, configuration)
			require.NoError(t, err)
			planned := map[string]capacity.Resources{}
			for _, pool := range loaded.Plan().Pools {
				planned[pool.Name] = pool.Used
				if pool.Name == loaded.SystemPoolName() {
					agents := capacity.ClusterAgents
					planned[pool.Name] = pool.Used.Minus(agents.Requests.Times(agents.Count))
				}
			}
			assert.Equal(t, planned, registeredRequests(t, programtest.DeployStack(t, name)))
		})
	}
}

// registeredRequests returns the requests of the pods of all registered objects, by the node pool
// that they are pinned to.
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
			MilliCPU:    amount(corev1.ResourceCPU),
			MemoryBytes: amount(corev1.ResourceMemory),
			GPUs:        amount("nvidia.com/gpu"),
			Pods:        1,

			EphemeralBytes: amount(corev1.ResourceEphemeralStorage),
		}.Times(int(count)))
	}
	for _, registration := range recorder.All(t, testkit.StatefulSet) {
		set := testkit.Object[appsv1.StatefulSet](t, registration)
		template := set.Spec.Template
		add(template.Spec.NodeSelector, withSidecar(t, template), *set.Spec.Replicas)
	}
	for _, registration := range recorder.All(t, testkit.Deployment) {
		deployment := testkit.Object[appsv1.Deployment](t, registration)
		add(deployment.Spec.Template.Spec.NodeSelector, deployment.Spec.Template.Spec.Containers[0].Resources, *deployment.Spec.Replicas)
	}
	for _, registration := range recorder.All(t, "kubernetes:batch/v1:Job") {
		pod := testkit.Object[batchv1.Job](t, registration).Spec.Template.Spec
		add(pod.NodeSelector, pod.Containers[0].Resources, 1)
	}
	for _, registration := range recorder.All(t, testkit.NATSCluster) {
		nats := testkit.Object[programtest.NATSCluster](t, registration)
		pod := nats.Spec.Pod
		whole := pod.Resources.Requests.DeepCopy()
		for name, amount := range pod.ReloaderResources.Requests {
			sum := whole[name]
			sum.Add(amount)
			whole[name] = sum
		}
		add(pod.NodeSelector, corev1.ResourceRequirements{Requests: whole}, nats.Spec.Size)
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

// TestPriorities: the large ones make room for themselves, NATS before all.
func TestPriorities(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	values := map[string]int32{}
	for _, registration := range prod.All(t, "kubernetes:scheduling.k8s.io/v1:PriorityClass") {
		class := testkit.Object[schedulingv1.PriorityClass](t, registration)
		values[class.Name] = class.Value
		assert.False(t, class.GlobalDefault, class.Name)
	}
	var order []int32
	nats := testkit.Object[programtest.NATSCluster](t, prod.One(t, testkit.NATSCluster, "persia-nats-service"))
	order = append(order, values[nats.Spec.Template.Spec.PriorityClassName])
	for _, role := range []string{"embedding-ps", "nn-worker", "embedding-worker", "dataloader"} {
		set := testkit.Object[appsv1.StatefulSet](t, prod.One(t, testkit.StatefulSet, "criteo-"+role))
		order = append(order, values[set.Spec.Template.Spec.PriorityClassName])
	}
	assert.IsDecreasing(t, order, "%v", values)
	assert.Positive(t, order[len(order)-1], "pods without a priority have 0")
}

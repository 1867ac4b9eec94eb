package queue_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"persia/capacity"
	"persia/config"
	"persia/internal/testkit"
	"persia/kube"
	"persia/workload/queue"
)

// registered are JobSet, Kueue and the queues of two teams on two pools.
func registered(t *testing.T) *testkit.Recorder {
	t.Helper()
	recorder, err := testkit.Run(t, pulumi.RunInfo{Project: "persia", Stack: "stack"}, testkit.Cloud{}, func(ctx *pulumi.Context) error {
		r := kube.NewRegistrar(ctx)
		queue.InstallJobSet(r, "jobset", nil)
		kueue := queue.InstallKueue(r, "kueue", config.Queue{StartMinutes: 30}, nil)
		gpu := capacity.Resources{MilliCPU: 96_000, MemoryBytes: 512 * capacity.GiB, GPUs: 8}
		queue.NewQueues(r, "queues", queue.QueuesArgs{
			Pools: []queue.Pool{
				{Name: "nn-workers", Placement: kube.Placement{
					NodeSelector: map[string]string{"pool": "nn-workers"},
					Tolerations:  []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "present", Effect: corev1.TaintEffectNoSchedule}},
				}},
				{Name: "loaders", Placement: kube.Placement{NodeSelector: map[string]string{"pool": "loaders"}}},
			},
			Teams: []queue.Team{
				{Name: "ranking", Quotas: []capacity.Resources{gpu, {MilliCPU: 1500}}},
				{Name: "ads", Quotas: []capacity.Resources{{}, {}}},
			},
			Uncounted: corev1.ResourceList{"example.com/fpga": resource.MustParse("6"), "ephemeral-storage": resource.MustParse("20Gi")},
			Queue:     config.Queue{WithinTeam: "LowerPriority", BetweenTeams: "Any", Priorities: []config.QueuePriority{{Name: "urgent", Value: 100}}},
			Needs:     kueue,
		})
		return r.End()
	})
	require.NoError(t, err)
	return recorder
}

const (
	crd           = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
	mutating      = "kubernetes:admissionregistration.k8s.io/v1:MutatingWebhookConfiguration"
	validating    = "kubernetes:admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration"
	clusterRole   = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"
	deployment    = "kubernetes:apps/v1:Deployment"
	flavor        = "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
	localQueue    = "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"
	priorityClass = "kubernetes:kueue.x-k8s.io/v1beta2:WorkloadPriorityClass"
)

// TestOrder checks the order of an install, which is the reverse of the order of a destroy: Kueue
// runs while there is an object whose finalizer it removes, and has its webhooks while it runs.
func TestOrder(t *testing.T) {
	r := registered(t)
	before := r.Before(r.One(t, localQueue, "queues-ranking"))
	for _, need := range []testkit.Resource{
		r.One(t, queue.ClusterQueueToken, "queues-ranking"), r.One(t, flavor, "queues-nn-workers"), r.One(t, flavor, "queues-loaders"),
		r.One(t, "kubernetes:core/v1:Service", "kueue"), r.One(t, deployment, "kueue"), r.One(t, crd, "kueue-workloads"),
		r.One(t, mutating, "kueue"), r.One(t, validating, "kueue"),
		r.One(t, "kubernetes:core/v1:Secret", "kueue"), r.One(t, "kubernetes:core/v1:ConfigMap", "kueue"),
	} {
		assert.Contains(t, before, need.URN)
	}
}

// TestProducts checks that webhooks fail closed in the namespace of jobs only, and that what a product
// may write in the whole cluster is its own.
func TestProducts(t *testing.T) {
	r := registered(t)
	for _, configuration := range append(r.Some(mutating), r.Some(validating)...) {
		for _, webhook := range testkit.At(t, configuration, "webhooks").([]any) {
			fields := webhook.(map[string]any)
			assert.Equal(t, map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "persia"}}, fields["namespaceSelector"], fields["name"])
			rule := fields["rules"].([]any)[0].(map[string]any)
			assert.Contains(t, []any{"kueue.x-k8s.io", "jobset.x-k8s.io"}, rule["apiGroups"].([]any)[0])
		}
	}
	for _, role := range r.Some(clusterRole) {
		for _, rule := range testkit.Object[rbacv1.ClusterRole](t, role).Rules {
			own := strings.HasSuffix(rule.APIGroups[0], ".x-k8s.io") || len(rule.ResourceNames) > 0 || rule.Resources[0] == "events"
			assert.True(t, own || !strings.Contains(strings.Join(rule.Verbs, ","), "update"), "%v", rule)
			assert.NotContains(t, rule.Resources, "secrets")
		}
	}
	for _, definition := range r.Some(crd) {
		versions := testkit.Object[extensionsv1.CustomResourceDefinition](t, definition).Spec.Versions
		require.Len(t, versions, 1, "a Kueue that does not run converts no objects")
		assert.True(t, versions[0].Served && versions[0].Storage)
	}
}

// TestVersions: an image, and the definitions that the program registers, are of the version that the sandbox runs.
func TestVersions(t *testing.T) {
	for product, tag := range map[string]string{"jobset": config.ImageJobSet.Tag, "kueue": config.ImageKueue.Tag} {
		modules := testkit.Read(t, "../../sandbox/toolchain/"+product+"/go.mod")
		assert.Regexp(t, `sigs\.k8s\.io/`+product+" "+regexp.QuoteMeta(tag)+`( |\n)`, modules)
	}
}

func TestQueues(t *testing.T) {
	r := registered(t)
	assert.Equal(t, map[string]any{
		"nodeLabels": map[string]any{"pool": "nn-workers"},
		"nodeTaints": []any{map[string]any{"key": "gpu", "value": "present", "effect": "NoSchedule"}},
	}, testkit.At(t, r.One(t, flavor, "queues-nn-workers"), "spec"))
	assert.NotContains(t, testkit.At(t, r.One(t, flavor, "queues-loaders"), "spec"), "nodeTaints")

	spec := testkit.At(t, r.One(t, queue.ClusterQueueToken, "queues-ranking"), "spec").(map[string]any)
	assert.Equal(t, map[string]any{"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority", "borrowWithinCohort": map[string]any{"policy": "LowerPriority"}}, spec["preemption"])
	assert.Equal(t, []any{map[string]any{
		"coveredResources": []any{"cpu", "memory", "nvidia.com/gpu", "ephemeral-storage", "example.com/fpga"},
		"flavors": []any{
			map[string]any{"name": "persia-nn-workers", "resources": quotas("96", "512Gi", "8")},
			map[string]any{"name": "persia-loaders", "resources": quotas("1500m", "0", "0")},
		},
	}}, spec["resourceGroups"])
	assert.Equal(t, "persia-ads", testkit.At(t, r.One(t, localQueue, "queues-ads"), "spec.clusterQueue"))
	assert.InDelta(t, 100, testkit.At(t, r.One(t, priorityClass, "queues-urgent"), "value"), 0)
}

func quotas(cpu, memory, gpus string) []any {
	return []any{
		map[string]any{"name": "cpu", "nominalQuota": cpu},
		map[string]any{"name": "memory", "nominalQuota": memory},
		map[string]any{"name": "nvidia.com/gpu", "nominalQuota": gpus},
		map[string]any{"name": "ephemeral-storage", "nominalQuota": "20Gi"},
		map[string]any{"name": "example.com/fpga", "nominalQuota": "6"},
	}
}

// TestTimeouts checks that a job whose pods are not all ready, at its start or after it has lost some,
// waits again after startMinutes, and any number of times.
func TestTimeouts(t *testing.T) {
	text := testkit.At(t, registered(t).One(t, "kubernetes:core/v1:ConfigMap", "kueue"), `data["config.yaml"]`).(string)
	var configuration struct {
		WaitForPodsReady map[string]any `json:"waitForPodsReady"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &configuration))
	wait := configuration.WaitForPodsReady
	assert.Equal(t, "30m", wait["timeout"])
	assert.Equal(t, "30m", wait["recoveryTimeout"])
	assert.NotContains(t, wait["requeuingStrategy"], "backoffLimitCount")
}

// TestQueuesBeforeJobs checks a stack with teams whose jobs do not wait in queues yet: the API server
// refuses a group of resources without a flavor.
func TestQueuesBeforeJobs(t *testing.T) {
	r := testkit.Must(testkit.Run(t, pulumi.RunInfo{Project: "persia", Stack: "stack"}, testkit.Cloud{}, func(ctx *pulumi.Context) error {
		r := kube.NewRegistrar(ctx)
		queue.NewQueues(r, "queues", queue.QueuesArgs{
			Teams: []queue.Team{{Name: "ads"}}, Queue: config.Queue{WithinTeam: "Never", BetweenTeams: "Never"},
		})
		return r.End()
	}))(t)
	spec := testkit.At(t, r.One(t, queue.ClusterQueueToken, "queues-ads"), "spec").(map[string]any)
	assert.NotContains(t, spec, "resourceGroups")
	assert.Equal(t, "Never", spec["preemption"].(map[string]any)["borrowWithinCohort"].(map[string]any)["policy"])
}

func TestPython(t *testing.T) {
	output, err := exec.Command("python3", "-B", "-m", "unittest", "test_provisioner").CombinedOutput()
	require.NoError(t, err, "%s", output)
}

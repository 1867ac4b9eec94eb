package kueue_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"persia/capacity"
	"persia/internal/testkit"
	"persia/kube"
	"persia/workload/kueue"
	"persia/workload/kueue/definitions"
)

// registered are Kueue and the queues of two teams on two pools.
func registered(t *testing.T) *testkit.Recorder {
	t.Helper()
	recorder, err := testkit.Run(t, pulumi.RunInfo{Project: "persia", Stack: "stack"}, testkit.Cloud{}, func(ctx *pulumi.Context) error {
		controller, err := kueue.NewController(ctx, "kueue", kueue.ControllerArgs{JobNamespace: "persia", StartMinutes: 30})
		if err != nil {
			return err
		}
		gpu := capacity.Resources{MilliCPU: 96_000, MemoryBytes: 512 * capacity.GiB, GPUs: 8}
		_, err = kueue.NewQueues(ctx, "queues", kueue.QueuesArgs{
			Prefix: "persia", JobNamespace: "persia",
			Pools: []kueue.Pool{
				{Name: "nn-workers", Placement: kube.Placement{
					NodeSelector: map[string]string{"pool": "nn-workers"},
					Tolerations:  []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "present", Effect: corev1.TaintEffectNoSchedule}},
				}},
				{Name: "loaders", Placement: kube.Placement{NodeSelector: map[string]string{"pool": "loaders"}}},
			},
			Teams: []kueue.Team{
				{Name: "ranking", Quotas: []capacity.Resources{gpu, {MilliCPU: 1500}}},
				{Name: "ads", Quotas: []capacity.Resources{{}, {}}},
			},
			Uncounted:  corev1.ResourceList{"example.com/fpga": resource.MustParse("6"), "ephemeral-storage": resource.MustParse("20Gi")},
			Priorities: []kueue.Priority{{Name: "urgent", Value: 100}},
			WithinTeam: "LowerPriority", BetweenTeams: "Any",
			Needs: controller.Objects,
		})
		return err
	})
	require.NoError(t, err)
	return recorder
}

const (
	deployment    = "kubernetes:apps/v1:Deployment"
	service       = "kubernetes:core/v1:Service"
	crd           = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
	mutating      = "kubernetes:admissionregistration.k8s.io/v1:MutatingWebhookConfiguration"
	validating    = "kubernetes:admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration"
	flavor        = "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
	clusterQueue  = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
	localQueue    = "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"
	priorityClass = "kubernetes:kueue.x-k8s.io/v1beta2:WorkloadPriorityClass"
)

// TestOrder checks the order of an install, which is the reverse of the order of a destroy: Kueue
// runs while there is an object whose finalizer it removes, and has its webhooks while it runs.
func TestOrder(t *testing.T) {
	r := registered(t)
	type id struct{ typeToken, name string }
	for _, test := range []struct {
		object id
		after  []id
	}{
		{id{localQueue, "queues-ranking"}, []id{{clusterQueue, "queues-ranking"}}},
		{id{clusterQueue, "queues-ranking"}, []id{{flavor, "queues-nn-workers"}, {flavor, "queues-loaders"}}},
		{id{flavor, "queues-nn-workers"}, []id{{service, "kueue"}}},
		{id{priorityClass, "queues-urgent"}, []id{{service, "kueue"}}},
		{id{service, "kueue"}, []id{{deployment, "kueue"}}},
		{id{deployment, "kueue"}, []id{
			{mutating, "kueue"}, {validating, "kueue"}, {crd, "kueue-workloads"}, {crd, "kueue-clusterqueues"},
			{"kubernetes:core/v1:Namespace", "kueue"},
			{"kubernetes:core/v1:Secret", "kueue"}, {"kubernetes:core/v1:ConfigMap", "kueue"},
			{"kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", "kueue"},
		}},
	} {
		t.Run(test.object.typeToken, func(t *testing.T) {
			before := r.Before(r.One(t, test.object.typeToken, test.object.name))
			for _, need := range test.after {
				assert.Contains(t, before, r.One(t, need.typeToken, need.name).URN)
			}
		})
	}
}

// TestWebhooks checks that the webhooks fail closed in the namespace of jobs only, and that the API
// server reaches them.
func TestWebhooks(t *testing.T) {
	r := registered(t)
	for _, typeToken := range []string{mutating, validating} {
		webhooks := testkit.At(t, r.One(t, typeToken, "kueue"), "webhooks").([]any)
		require.NotEmpty(t, webhooks)
		for _, webhook := range webhooks {
			fields := webhook.(map[string]any)
			assert.Equal(t, map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "persia"}}, fields["namespaceSelector"], fields["name"])
			group := fields["rules"].([]any)[0].(map[string]any)["apiGroups"].([]any)[0]
			assert.Contains(t, []any{"kueue.x-k8s.io", "jobset.x-k8s.io"}, group)
		}
	}
	port := testkit.At(t, r.One(t, service, "kueue"), "spec.ports[0].targetPort")
	assert.InDelta(t, 10250, port, 0, "GKE opens no other port that a container can use")
	policy := r.One(t, "kubernetes:networking.k8s.io/v1:NetworkPolicy", "kueue-webhooks")
	assert.InDelta(t, 10250, testkit.At(t, policy, "spec.ingress[0].ports[0].port"), 0)
	assert.Empty(t, r.Some("kubernetes:apiregistration.k8s.io/v1:APIService"), "one that is unavailable keeps all namespaces from being deleted")
}

func TestQueues(t *testing.T) {
	r := registered(t)
	nnWorkers := r.One(t, flavor, "queues-nn-workers")
	assert.Equal(t, map[string]any{
		"nodeLabels": map[string]any{"pool": "nn-workers"},
		"nodeTaints": []any{map[string]any{"key": "gpu", "value": "present", "effect": "NoSchedule"}},
	}, testkit.At(t, nnWorkers, "spec"))
	assert.NotContains(t, testkit.At(t, r.One(t, flavor, "queues-loaders"), "spec"), "nodeTaints")

	spec := testkit.At(t, r.One(t, clusterQueue, "queues-ranking"), "spec").(map[string]any)
	assert.Equal(t, "persia", spec["cohortName"])
	assert.Equal(t, map[string]any{"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority", "borrowWithinCohort": map[string]any{"policy": "LowerPriority"}}, spec["preemption"])
	assert.Equal(t, []any{map[string]any{
		"coveredResources": []any{"cpu", "memory", "nvidia.com/gpu", "ephemeral-storage", "example.com/fpga"},
		"flavors": []any{
			map[string]any{"name": "persia-nn-workers", "resources": quotas("96", "512Gi", "8")},
			map[string]any{"name": "persia-loaders", "resources": quotas("1500m", "0", "0")},
		},
	}}, spec["resourceGroups"])

	local := r.One(t, localQueue, "queues-ads")
	assert.Equal(t, "ads", testkit.At(t, local, "metadata.name"))
	assert.Equal(t, "persia", testkit.At(t, local, "metadata.namespace"))
	assert.Equal(t, "persia-ads", testkit.At(t, local, "spec.clusterQueue"))
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

// TestDefinitions checks that no object has to be converted by a Kueue that may not run.
func TestDefinitions(t *testing.T) {
	all, err := definitions.All()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, definition := range all {
		require.Len(t, definition.Spec.Versions, 1, definition.Name)
		version := definition.Spec.Versions[0]
		assert.Equal(t, definitions.Version, version.Name)
		assert.True(t, version.Served && version.Storage)
		assert.Empty(t, version.Schema.OpenAPIV3Schema.Description)
		assert.Empty(t, version.Schema.OpenAPIV3Schema.Properties["spec"].Description)
	}
}

// TestQueuesBeforeJobs checks a stack with teams whose jobs do not wait in queues yet: the API server
// refuses a group of resources without a flavor.
func TestQueuesBeforeJobs(t *testing.T) {
	r, err := testkit.Run(t, pulumi.RunInfo{Project: "persia", Stack: "stack"}, testkit.Cloud{}, func(ctx *pulumi.Context) error {
		_, err := kueue.NewQueues(ctx, "queues", kueue.QueuesArgs{
			Prefix: "persia", JobNamespace: "persia", Teams: []kueue.Team{{Name: "ads"}}, WithinTeam: "Never", BetweenTeams: "Never",
		})
		return err
	})
	require.NoError(t, err)
	assert.NotContains(t, testkit.At(t, r.One(t, clusterQueue, "queues-ads"), "spec"), "resourceGroups")
}

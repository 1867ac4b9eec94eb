package tests

import (
	"testing"

	"persia/internal/programtest"
	"persia/internal/testkit"

	"github.com/stretchr/testify/assert"
)

// TestOrder looks at dependencies, and theirs, not at the order of calls, which would
// be the same with every dependency left out.
func TestOrder(t *testing.T) {
	type id struct{ typeToken, name string }
	const (
		pool        = "gcp:container/nodePool:NodePool"
		statefulSet = "kubernetes:apps/v1:StatefulSet"
		deployment  = "kubernetes:apps/v1:Deployment"
		daemonSet   = "kubernetes:apps/v1:DaemonSet"
		crd         = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
		natsCluster = "kubernetes:nats.io/v1alpha2:NatsCluster"
		volume      = "kubernetes:core/v1:PersistentVolume"
		claim       = "kubernetes:core/v1:PersistentVolumeClaim"
		namespace   = "kubernetes:core/v1:Namespace"
		policy      = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
		binding     = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
		budget      = "kubernetes:policy/v1:PodDisruptionBudget"
	)
	pools := []id{
		{pool, "persia-prod-system"}, {pool, "persia-prod-nn-workers"}, {pool, "persia-prod-dataloaders"},
		{pool, "persia-prod-embedding-workers"}, {pool, "persia-prod-embedding-ps"}, {pool, "persia-prod-nats"},
	}
	roleNeeds := append([]id{
		{natsCluster, "persia-nats-service"},
		{claim, "workspace"},
		{daemonSet, "nvidia-driver"},
		{namespace, "persia"},
		{policy, "criteo"},
	}, pools...)
	cases := map[id][]id{
		{natsCluster, "persia-nats-service"}: {
			{crd, "nats-operator-natsclusters"}, {crd, "nats-operator-natsserviceroles"}, {deployment, "nats-operator"},
		},
		{deployment, "nats-operator"}: append([]id{
			{crd, "nats-operator-natsclusters"}, {binding, "nats-operator"},
		}, pools...),
		{budget, "persia-nats-service"}:                  {{natsCluster, "persia-nats-service"}},
		{claim, "workspace"}:                             {{volume, "workspace"}, {namespace, "persia"}},
		{daemonSet, "nvidia-driver"}:                     pools,
		{statefulSet, "criteo-nn-worker"}:                roleNeeds,
		{statefulSet, "criteo-dataloader"}:               roleNeeds,
		{statefulSet, "criteo-embedding-worker"}:         roleNeeds,
		{statefulSet, "criteo-embedding-ps"}:             roleNeeds,
		{pool, "persia-prod-nn-workers"}:                 {{"gcp:container/cluster:Cluster", "persia-prod"}},
		{"gcp:container/cluster:Cluster", "persia-prod"}: {{"gcp:compute/routerNat:RouterNat", "persia-prod"}},
	}
	prod := programtest.DeployStack(t, "prod")
	for from, needs := range cases {
		t.Run(from.typeToken+" "+from.name, func(t *testing.T) {
			before := prod.Before(prod.One(t, from.typeToken, from.name))
			for _, need := range needs {
				assert.Contains(t, before, prod.One(t, need.typeToken, need.name).URN)
			}
		})
	}
}

// TestRolesStartBesideNATS: the roles of a job are created without waiting for the NATS servers, which
// only the disruption budget waits for, and are deleted before the NatsCluster.
func TestRolesStartBesideNATS(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	servers := prod.One(t, testkit.NATSCluster, "persia-nats-service")
	budget := prod.One(t, testkit.DisruptionBudget, "persia-nats-service")
	assert.NotContains(t, testkit.At(t, servers, "metadata"), "annotations")
	assert.Contains(t, testkit.At(t, budget, `metadata.annotations["pulumi.com/waitFor"]`), "currentHealthy")
	for _, role := range prod.All(t, testkit.StatefulSet) {
		before := prod.Before(role)
		assert.Contains(t, before, servers.URN, role.Name)
		assert.NotContains(t, before, budget.URN, role.Name)
	}
}

// TestProvider checks that nothing inside the cluster goes to whichever
// cluster the user's kubectl happens to point at.
func TestProvider(t *testing.T) {
	for _, name := range []string{"dev", "prod"} {
		prod := programtest.DeployStack(t, name)
		provider := prod.One(t, "pulumi:providers:kubernetes", "persia-"+name)
		assert.True(t, provider.Inputs["kubeconfig"].ContainsSecrets(), "the kubeconfig is a secret")
		seen := 0
		for _, registration := range prod.Resources {
			if registration.Custom && len(registration.TypeToken) > 11 && registration.TypeToken[:11] == "kubernetes:" {
				seen++
				assert.Contains(t, registration.Provider, "pulumi:providers:kubernetes::persia-"+name, registration.URN)
			}
		}
		assert.Greater(t, seen, 15)
	}
}

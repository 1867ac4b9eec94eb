package tests

import (
	"strings"
	"testing"

	"persia/internal/programtest"
	"persia/internal/testkit"

	"github.com/stretchr/testify/assert"
)

// TestOrder looks at all dependencies. The order of calls would be the same without any.
func TestOrder(t *testing.T) {
	pools := []string{
		"NodePool persia-prod-system", "NodePool persia-prod-nn-workers", "NodePool persia-prod-dataloaders",
		"NodePool persia-prod-embedding-workers", "NodePool persia-prod-embedding-ps", "NodePool persia-prod-nats",
	}
	role := append([]string{
		"NatsCluster persia-nats-service", "PersistentVolumeClaim workspace", "DaemonSet nvidia-driver", "Namespace persia", "NetworkPolicy criteo",
		"ServiceAccount criteo", "BucketIAMMember gs://my-project-persia-workspace/criteo",
		// The servers come up beside the roles. Only their disruption budget waits for them.
		"not PodDisruptionBudget persia-nats-service",
	}, pools...)
	prod := programtest.DeployFile(t, "Pulumi.prod.yaml")
	find := func(what string) testkit.Resource {
		kind, name, _ := strings.Cut(what, " ")
		for _, r := range prod.Resources {
			if r.Custom && strings.HasSuffix(r.TypeToken, ":"+kind) && r.Name == name {
				return r
			}
		}
		t.Fatalf("the plan has no %s", what)
		return testkit.Resource{}
	}
	for what, needs := range map[string][]string{
		"NatsCluster persia-nats-service":         {"CustomResourceDefinition nats-operator-natsclusters", "CustomResourceDefinition nats-operator-natsserviceroles", "Deployment nats-operator"},
		"Deployment nats-operator":                append([]string{"CustomResourceDefinition nats-operator-natsclusters", "RoleBinding nats-operator"}, pools...),
		"PodDisruptionBudget persia-nats-service": {"NatsCluster persia-nats-service"},
		"PersistentVolumeClaim workspace":         {"PersistentVolume workspace", "Namespace persia"},
		"DaemonSet nvidia-driver":                 pools,
		"StatefulSet criteo-nn-worker":            role,
		"StatefulSet criteo-dataloader":           role,
		"StatefulSet criteo-embedding-worker":     role,
		"StatefulSet criteo-embedding-ps":         role,
		"NodePool persia-prod-nn-workers":         {"Cluster persia-prod"},
		"Cluster persia-prod":                     {"RouterNat persia-prod"},
	} {
		t.Run(what, func(t *testing.T) {
			before := prod.Before(find(what))
			for _, need := range needs {
				other, not := strings.CutPrefix(need, "not ")
				assert.Equal(t, !not, before[find(other).URN], need)
			}
		})
	}
}

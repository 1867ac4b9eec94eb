package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/natsspec"
)

// exposureWarnings are about what a stack file turns off that keeps pods apart.
func (s warner) exposureWarnings() []string {
	var warnings []string
	warn := func(path *field.Path, text string) { warnings = append(warnings, path.String()+": "+text) }
	if s.Cluster.Existing == nil && !s.Cluster.DataplaneV2 {
		warn(field.NewPath(clusterKey, "dataplaneV2"), "without it, GKE does not enforce network policies, and every pod in the cluster can reach NATS, the metrics gateways, and PEDL; give NATS users")
	}
	if s.Cluster.Existing == nil && !s.Cluster.WorkloadIdentity {
		warn(field.NewPath(clusterKey, "workloadIdentity"), "without it, every pod can get the token of its node's service account from the metadata server, with the permissions of nodes")
	}
	if s.NATS.OperatorScope == natsspec.ScopeCluster {
		warn(field.NewPath(natsKey, "operatorScope"), "the NATS operator can read Secrets and create pods in all namespaces, so anyone who takes it over is effectively a cluster administrator; write namespace unless you have NatsClusters in other namespaces")
	}
	return warnings
}

package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/nats"
)

// exposureWarnings are about what a stack file turns off that keeps pods apart.
func (s warner) exposureWarnings() []string {
	var warnings []string
	warn := func(path *field.Path, text string) { warnings = append(warnings, path.String()+": "+text) }
	if s.Cluster.Existing == nil && !s.Cluster.DataplaneV2 {
		warn(field.NewPath(clusterKey, "dataplaneV2"), "without it GKE does not enforce network policies: each pod of the cluster reaches NATS, the metrics gateways and PEDL; give NATS users")
	}
	if s.Cluster.Existing == nil && !s.Cluster.WorkloadIdentity {
		warn(field.NewPath(clusterKey, "workloadIdentity"), "without it each pod gets the token of its node's service account from the metadata server, with the rights of nodes")
	}
	if s.NATS.OperatorScope == nats.ScopeCluster {
		warn(field.NewPath(natsKey, "operatorScope"), "the NATS operator reads the Secrets and makes pods in all namespaces, which makes whoever takes it over an administrator of the cluster; write namespace unless others have NatsClusters elsewhere")
	}
	return warnings
}

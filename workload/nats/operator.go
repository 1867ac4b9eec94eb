package nats

import (
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

// Namespace holds the operator and the servers.
const Namespace = config.NATSNamespace

// The kind of a NatsCluster, and its type in Pulumi.
const (
	apiVersion = "nats.io/v1alpha2"
	Kind       = "NatsCluster"
	Token      = "kubernetes:" + apiVersion + ":" + Kind
)

//go:embed operator.yaml
var operatorManifest string

// NewOperator registers the NATS operator with its namespace, its identity, and its custom resource
// definitions. It manages the NatsClusters of [Namespace].
func NewOperator(r *kube.Registrar, name string) []pulumi.CustomResource {
	return kube.Needs(r.Component("persia:nats:Operator", name).AddOperator(name, kube.Operator{
		Manifest: operatorManifest, Image: config.ImageNATSOperator.Reference(), Requests: capacity.NATSOperator,
	}, nil))
}

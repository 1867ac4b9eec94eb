package nats

import (
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

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

// OperatorArgs describes the operator.
type OperatorArgs struct {
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where the operator runs.
	Placement kube.Placement
}

// NewOperator registers the NATS operator with its namespace, its identity, and its custom resource
// definitions. It manages the NatsClusters of [Namespace].
func NewOperator(r *kube.Registrar, name string, args OperatorArgs) []pulumi.CustomResource {
	operator, err := kube.ReadOperator(operatorManifest, struct {
		Image    string
		Requests corev1.ResourceList
	}{args.Images.Reference(config.ImageNATSOperator.Reference()), kube.Requests(capacity.NATSOperator)})
	r.Fail(err)
	operator.Placement = args.Placement
	return kube.Needs(r.Component("persia:nats:Operator", name).AddOperator(name, operator, nil))
}

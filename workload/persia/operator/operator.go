package operator

import (
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

const (
	// Namespace holds the operator, apart from the pods that it makes.
	Namespace = "persia-operator"

	operatorUser = 1000
)

// OperatorArgs describes the operator.
type OperatorArgs struct {
	// Image has the operator. It is always the same one.
	Image string
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where the operator runs.
	Placement kube.Placement
	// Adopter registers objects that Kubernetes has created already.
	Adopter pulumi.ProviderResource
	// JobNamespace is where PersiaJobs may have pods. It is among Needs.
	JobNamespace string
	// Needs come before everything of the operator.
	Needs []pulumi.CustomResource
}

//go:embed operator.yaml
var manifest string

// NewOperator registers the operator with its namespace, identity and kind.
func NewOperator(ctx *pulumi.Context, name string, args OperatorArgs, opts ...pulumi.ResourceOption) (*kube.Operator, error) {
	operator, err := kube.ReadOperator(manifest, struct {
		Image, JobNamespace string
		Requests            corev1.ResourceList
	}{args.Images.Reference(args.Image), args.JobNamespace, kube.Requests(capacity.PERSIAOperator)})
	if err != nil {
		return nil, err
	}
	crd, err := definition()
	if err != nil {
		return nil, err
	}
	operator.Kinds, operator.Placement = []kube.Kind{{Resource: name, Definition: crd}}, args.Placement
	component := &kube.Operator{}
	objects := kube.NewComponent(ctx, "persia:operator:Operator", name, component, opts...)
	component.Objects = kube.Needs(
		objects.AddOperator(name, operator, args.Needs),
		// Kubernetes makes the account with the namespace, and deletes it with that.
		objects.Add(name+"-pods", podAccount(args.JobNamespace), args.Needs, pulumi.Provider(args.Adopter), pulumi.RetainOnDelete(true)),
	)
	return component, objects.End()
}

// podAccount takes the token from the pods of jobs: the operator names no account for
// them, and so they have this one.
func podAccount(namespace string) *corev1.ServiceAccount {
	no := false
	return &corev1.ServiceAccount{
		ObjectMeta:                   kube.Meta(namespace, "default", nil),
		AutomountServiceAccountToken: &no,
	}
}

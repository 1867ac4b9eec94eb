package operator

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

const (
	// Namespace holds the operator, apart from the pods that it makes.
	Namespace = "persia-operator"

	operatorName = "persia-operator"
	// Any user but root: the program writes only to /tmp.
	operatorUser = 1000
	temporary    = "/tmp"
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

// NewOperator registers the operator with its namespace, identity and kind.
func NewOperator(ctx *pulumi.Context, name string, args OperatorArgs, opts ...pulumi.ResourceOption) (*kube.Operator, error) {
	component := &kube.Operator{}
	if err := ctx.RegisterComponentResource("persia:operator:Operator", name, component, opts...); err != nil {
		return nil, err
	}
	crd, err := definition()
	if err != nil {
		return nil, err
	}
	described := operator(args, kube.Kind{Resource: name, Definition: crd})
	registered, err := kube.RegisterOperator(ctx, name, described, kube.Child(component, args.Needs))
	if err != nil {
		return nil, err
	}
	// Kubernetes makes the account with the namespace, and deletes it with that.
	account, err := kube.Register(ctx, name+"-pods", podAccount(args.JobNamespace), kube.Child(component, args.Needs),
		pulumi.Provider(args.Adopter), pulumi.RetainOnDelete(true))
	if err != nil {
		return nil, err
	}
	component.Objects = []pulumi.CustomResource{registered, account}
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{})
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

// operator returns the Deployment. It has no probe, because the program listens on no port.
func operator(args OperatorArgs, kind kube.Kind) kube.OperatorArgs {
	return kube.OperatorArgs{
		Name:          operatorName,
		Namespace:     Namespace,
		PodSecurity:   kube.RestrictedPodSecurity(),
		Kinds:         []kube.Kind{kind},
		RoleNamespace: args.JobNamespace,
		Role:          podRules(),
		ClusterRole:   jobRules(),
		Container: corev1.Container{
			Image:           args.Images.Reference(args.Image),
			ImagePullPolicy: corev1.PullIfNotPresent,
			Args:            []string{"persia-k8s-utils", "operator"},
			Env:             []corev1.EnvVar{{Name: "HOME", Value: temporary}},
			VolumeMounts:    []corev1.VolumeMount{{Name: "tmp", MountPath: temporary}},
			Resources: corev1.ResourceRequirements{
				Requests: kube.Requests(capacity.PERSIAOperator),
				// The launcher, which waits for the operator to end, is Python
				// with all of PyTorch loaded.
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			},
		},
		Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{},
		}}},
		User:      operatorUser,
		Placement: args.Placement,
	}
}

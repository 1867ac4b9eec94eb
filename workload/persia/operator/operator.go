package operator

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/kube"
)

const (
	// Namespace holds the operator, apart from the pods that it makes.
	Namespace = "persia-operator"

	operatorName = "persia-operator"
	// Upstream has published no other tag.
	operatorImage = "persiaml/persia-cpu-runtime:latest"
)

// OperatorArgs describes the operator.
type OperatorArgs struct {
	// Placement is where the operator runs.
	Placement kube.Placement
	// JobNamespace is where PersiaJobs may have pods. It is among Needs.
	JobNamespace string
	// Needs come before everything of the operator.
	Needs []pulumi.CustomResource
}

// Operator is PERSIA's operator and the kind that it serves.
type Operator struct {
	pulumi.ResourceState

	// Objects are the Deployment, which comes after everything else of the operator.
	Objects []pulumi.CustomResource
}

// NewOperator registers the operator with its namespace, identity and kind.
func NewOperator(ctx *pulumi.Context, name string, args OperatorArgs, opts ...pulumi.ResourceOption) (*Operator, error) {
	operator := &Operator{}
	if err := ctx.RegisterComponentResource("persia:operator:Operator", name, operator, opts...); err != nil {
		return nil, err
	}
	child := kube.Child(operator, args.Needs)

	namespace, err := kube.Register(ctx, name, &corev1.Namespace{
		ObjectMeta: kube.Meta("", Namespace, kube.BaselinePodSecurity()),
	}, child)
	if err != nil {
		return nil, err
	}
	inNamespace := kube.After([]pulumi.CustomResource{namespace})
	account, err := kube.Register(ctx, name, &corev1.ServiceAccount{
		ObjectMeta: operatorMeta(Namespace),
	}, child, inNamespace)
	if err != nil {
		return nil, err
	}
	closed, err := kube.Register(ctx, name, closedPolicy(), child, inNamespace)
	if err != nil {
		return nil, err
	}
	rights, err := grantRights(ctx, name, args.JobNamespace, child, inNamespace)
	if err != nil {
		return nil, err
	}
	crd, err := definition()
	if err != nil {
		return nil, err
	}
	kind, err := kube.Register(ctx, name, crd, child)
	if err != nil {
		return nil, err
	}
	registered, err := kube.Register(ctx, name, deployment(args), child,
		kube.After(append(rights, kind, account, closed)), kube.WorkloadTimeouts())
	if err != nil {
		return nil, err
	}
	operator.Objects = []pulumi.CustomResource{registered}
	return operator, ctx.RegisterResourceOutputs(operator, pulumi.Map{})
}

func operatorLabels() map[string]string {
	return kube.Labels(operatorName, operatorName)
}

func operatorMeta(namespace string) metav1.ObjectMeta {
	return kube.Meta(namespace, operatorName, operatorLabels())
}

// closedPolicy lets nobody in to the operator, which nobody needs to reach.
func closedPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: operatorMeta(Namespace),
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
}

func deployment(args OperatorArgs) *appsv1.Deployment {
	replicas := int32(1)
	pod := corev1.PodSpec{
		ServiceAccountName: operatorName,
		Containers: []corev1.Container{{
			Name:            operatorName,
			Image:           operatorImage,
			ImagePullPolicy: corev1.PullAlways,
			Args:            []string{"persia-k8s-utils", "operator"},
			VolumeMounts:    []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
			Resources: corev1.ResourceRequirements{
				Requests: kube.Requests(capacity.PERSIAOperator),
				// The launcher, which waits for the operator to end, is Python
				// with all of PyTorch loaded.
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			},
		}},
		Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{},
		}}},
	}
	restrict(&pod)
	args.Placement.Apply(&pod)
	return &appsv1.Deployment{
		ObjectMeta: operatorMeta(Namespace),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			// Two operators would both make the pods of a new job.
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": operatorName}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: operatorLabels()},
				Spec:       pod,
			},
		},
	}
}

// restrict takes away whatever the program can do without. The image is made for
// root, and nothing says that another user may read all of it.
func restrict(pod *corev1.PodSpec) {
	yes, no := true, false
	pod.SecurityContext = &corev1.PodSecurityContext{
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	for i := range pod.Containers {
		pod.Containers[i].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &yes,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
}

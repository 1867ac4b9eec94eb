package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

const (
	// Namespace holds the operator and the servers. Before anything else, the
	// operator lists the pods of the namespace of this name, wherever it runs
	// itself; here it needs no right outside of its own namespace for that.
	Namespace = config.NATSNamespace

	operatorName = "nats-operator"
	// The last release, and the first that runs on Kubernetes 1.22 and later.
	operatorImage = "natsio/nats-operator:0.8.3"
	operatorPort  = 8080
	// Any user but root: the program writes no file.
	operatorUser = 1000
)

// OperatorArgs describes the operator.
type OperatorArgs struct {
	// Scope is whose NatsClusters the operator looks after.
	Scope config.OperatorScope
	// Placement is where the operator runs.
	Placement kube.Placement
}

// Operator is the NATS operator, in charge of the NatsClusters of [Namespace], or
// of all namespaces.
type Operator struct {
	pulumi.ResourceState

	// Objects are the Deployment, which comes after everything else of the operator.
	Objects []pulumi.CustomResource
}

// NewOperator registers the operator with its namespace, identity and the kinds
// that it serves.
func NewOperator(ctx *pulumi.Context, name string, args OperatorArgs, opts ...pulumi.ResourceOption) (*Operator, error) {
	operator := &Operator{}
	if err := ctx.RegisterComponentResource("persia:nats:Operator", name, operator, opts...); err != nil {
		return nil, err
	}
	child := pulumi.Parent(operator)

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
	rights, err := grantRights(ctx, name, args.Scope, child, inNamespace)
	if err != nil {
		return nil, err
	}
	kinds, err := defineKinds(ctx, name, child)
	if err != nil {
		return nil, err
	}
	needs := append(append(rights, kinds...), account, closed)
	registered, err := kube.Register(ctx, name, deployment(args), child,
		kube.After(needs), kube.WorkloadTimeouts())
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

func deployment(args OperatorArgs) *appsv1.Deployment {
	replicas := int32(1)
	selector := map[string]string{"app.kubernetes.io/name": operatorName}
	pod := corev1.PodSpec{
		ServiceAccountName: operatorName,
		Containers: []corev1.Container{{
			Name:    operatorName,
			Image:   operatorImage,
			Command: []string{operatorName},
			Args:    arguments(args.Scope),
			Env: []corev1.EnvVar{
				fieldEnv("MY_POD_NAMESPACE", "metadata.namespace"),
				fieldEnv("MY_POD_NAME", "metadata.name"),
			},
			Ports:          []corev1.ContainerPort{{Name: "readyz", ContainerPort: operatorPort}},
			ReadinessProbe: probe(10),
			LivenessProbe:  probe(30),
			Resources: corev1.ResourceRequirements{
				Requests: kube.Requests(capacity.NATSOperator),
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
		}},
	}
	kube.Restrict(&pod, operatorUser)
	args.Placement.Apply(&pod)
	return &appsv1.Deployment{
		ObjectMeta: operatorMeta(Namespace),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			// An operator of another scope does not start beside this one.
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: operatorLabels()},
				Spec:       pod,
			},
		},
	}
}

// arguments tell the operator its scope. Other operators look for it among the
// arguments, not in the command.
func arguments(scope config.OperatorScope) []string {
	if scope == config.ScopeCluster {
		return []string{"--feature-gates=ClusterScoped=true"}
	}
	return nil
}

func probe(seconds int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/readyz",
			Port: intstr.FromString("readyz"),
		}},
		PeriodSeconds:  seconds,
		TimeoutSeconds: 3,
	}
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: path},
	}}
}

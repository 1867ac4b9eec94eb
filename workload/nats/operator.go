package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/capacity"
	"persia/config/cachespec"
	"persia/config/images"
	"persia/config/natsspec"
	"persia/kube"
)

const (
	// Namespace holds the operator and the servers. At startup, the operator lists the
	// pods of the namespace with this name, wherever it runs. In this namespace, it
	// needs no right outside its own namespace for that.
	Namespace = natsspec.Namespace

	operatorName = natsspec.OperatorName
	operatorPort = 8080
	// Any user but root, because the program writes no files.
	operatorUser = 1000
)

// OperatorArgs describes the operator.
type OperatorArgs struct {
	// Scope says whose NatsClusters the operator manages.
	Scope natsspec.Scope
	// Images says where nodes pull images from.
	Images cachespec.Settings
	// Placement is where the operator runs.
	Placement kube.Placement
}

// Operator is the NATS operator. It manages the NatsClusters of [Namespace], or of all
// namespaces.
type Operator struct {
	pulumi.ResourceState

	// Objects is the Deployment, which depends on everything else of the operator.
	Objects []pulumi.CustomResource
}

// NewOperator registers the operator with its namespace, its identity, and its custom
// resource definitions.
func NewOperator(ctx *pulumi.Context, name string, args OperatorArgs, opts ...pulumi.ResourceOption) (*Operator, error) {
	component := &Operator{}
	if err := ctx.RegisterComponentResource("persia:nats:Operator", name, component, opts...); err != nil {
		return nil, err
	}
	registered, err := kube.RegisterOperator(ctx, name, operator(name, args), pulumi.Parent(component))
	if err != nil {
		return nil, err
	}
	component.Objects = []pulumi.CustomResource{registered}
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{})
}

func operator(name string, args OperatorArgs) kube.Operator {
	role, clusterRole := rights(args.Scope)
	return kube.Operator{
		Name:      operatorName,
		Namespace: Namespace,
		// The restricted standard would refuse the servers: the operator adds their
		// reloader and exporter without a security context.
		PodSecurity:   kube.BaselinePodSecurity(),
		Kinds:         kinds(name),
		RoleNamespace: Namespace,
		Role:          role,
		ClusterRole:   clusterRole,
		Container: corev1.Container{
			Image:   args.Images.Reference(images.NATSOperator.Reference()),
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
		},
		User:      operatorUser,
		Placement: args.Placement,
	}
}

// arguments set the operator's scope. Other operators look for it among the arguments,
// not in the command.
func arguments(scope natsspec.Scope) []string {
	if scope == natsspec.ScopeCluster {
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

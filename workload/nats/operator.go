package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

const (
	// Namespace holds the operator and the servers. At startup, the operator lists the
	// pods of the namespace with this name, wherever it runs. In this namespace, it
	// needs no right outside its own namespace for that.
	Namespace = config.NATSNamespace

	operatorName = config.NATSOperatorName
	operatorPort = 8080
	// Any user but root, because the program writes no files.
	operatorUser = 1000
)

// OperatorArgs describes the operator.
type OperatorArgs struct {
	// Scope says whose NatsClusters the operator manages.
	Scope config.OperatorScope
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where the operator runs.
	Placement kube.Placement
}

// NewOperator registers the NATS operator with its namespace, its identity, and its custom resource
// definitions. It manages the NatsClusters of [Namespace], or of all namespaces.
func NewOperator(ctx *pulumi.Context, name string, args OperatorArgs, opts ...pulumi.ResourceOption) (*kube.Operator, error) {
	return kube.NewOperator(ctx, "persia:nats:Operator", name, operator(name, args), nil, opts...)
}

func operator(name string, args OperatorArgs) kube.OperatorArgs {
	role, clusterRole := rights(args.Scope)
	return kube.OperatorArgs{
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
			Image:   args.Images.Reference(config.ImageNATSOperator.Reference()),
			Command: []string{operatorName},
			Args:    arguments(args.Scope),
			Env: []corev1.EnvVar{
				kube.FieldEnv("MY_POD_NAMESPACE", "metadata.namespace"),
				kube.FieldEnv("MY_POD_NAME", "metadata.name"),
			},
			Ports:          []corev1.ContainerPort{{Name: "readyz", ContainerPort: operatorPort}},
			ReadinessProbe: kube.HTTPProbe("readyz", "/readyz", 10, 3),
			LivenessProbe:  kube.HTTPProbe("readyz", "/readyz", 30, 3),
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
func arguments(scope config.OperatorScope) []string {
	if scope == config.ScopeCluster {
		return []string{"--feature-gates=ClusterScoped=true"}
	}
	return nil
}

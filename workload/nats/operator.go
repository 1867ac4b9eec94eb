package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where the operator runs.
	Placement kube.Placement
}

// NewOperator registers the NATS operator with its namespace, its identity, and its custom resource
// definitions. It manages the NatsClusters of [Namespace].
func NewOperator(ctx *pulumi.Context, name string, args OperatorArgs, opts ...pulumi.ResourceOption) (*kube.Operator, error) {
	return kube.NewOperator(ctx, "persia:nats:Operator", name, operator(name, args), nil, opts...)
}

func operator(name string, args OperatorArgs) kube.OperatorArgs {
	return kube.OperatorArgs{
		Name:      operatorName,
		Namespace: Namespace,
		// The restricted standard would refuse the servers: the operator adds their
		// reloader and exporter without a security context.
		PodSecurity:   kube.PodSecurity("baseline"),
		Kinds:         kinds(name),
		RoleNamespace: Namespace,
		Role:          namespaceRules(),
		ClusterRole:   kindRules(),
		Container: corev1.Container{
			Image:   args.Images.Reference(config.ImageNATSOperator.Reference()),
			Command: []string{operatorName},
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

// namespaceRules are exactly the rights that the operator needs in its namespace. sandbox/e2e compares
// them and kindRules with the operator's requests.
func namespaceRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		kube.Rule(group, []string{"list", "patch", "watch"}, clusterKind.plural),
		kube.Rule(group, []string{"list", "watch"}, serviceRoleKind.plural),
		kube.Rule("", []string{"create", "delete", "get", "list", "patch", "watch"}, "pods"),
		// The operator tells a server to send its clients to other servers before
		// it deletes the pod.
		kube.Rule("", []string{"create"}, "pods/exec"),
		// A new version changes the selector of the servers' service.
		kube.Rule("", []string{"create", "get", "list", "patch", "watch"}, "services"),
		// The servers' configuration.
		kube.Rule("", []string{"create", "get", "list", "update", "watch"}, "secrets"),
		// The operator makes sure that it is the only one.
		kube.Rule("", []string{"create", "get", "update"}, "endpoints"),
		kube.Rule("", []string{"create"}, "events"),
	}
}

// kindRules allow the operator to manage its own two definitions, which it writes at
// each start. It does not create them, because the program does.
func kindRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{kube.RuleFor([]string{clusterKind.crd(), serviceRoleKind.crd()},
		"apiextensions.k8s.io", []string{"get", "list", "update", "watch"}, "customresourcedefinitions")}
}

const (
	group   = "nats.io"
	version = "v1alpha2"
)

// kind is a custom resource of the operator.
type kind struct {
	name       string
	plural     string
	shortNames []string
}

var (
	clusterKind     = kind{name: "NatsCluster", plural: "natsclusters", shortNames: []string{"nats"}}
	serviceRoleKind = kind{name: "NatsServiceRole", plural: "natsserviceroles"}
)

// Token is the type of a NatsCluster in Pulumi.
const Token = "kubernetes:" + group + "/" + version + ":NatsCluster"

func (k kind) crd() string { return k.plural + "." + group }

// kinds returns the operator's custom resources, by the names of their definitions in
// Pulumi.
func kinds(name string) []kube.Kind {
	var kinds []kube.Kind
	for _, kind := range []kind{clusterKind, serviceRoleKind} {
		kinds = append(kinds, kube.Kind{Resource: name + "-" + kind.plural, Definition: definition(kind)})
	}
	return kinds
}

// definition returns exactly the definition that the operator writes at startup
// (pkg/util/kubernetes/crd.go of v0.8.3), so that the operator changes nothing.
func definition(kind kind) *extensionsv1.CustomResourceDefinition {
	anything := true
	return &extensionsv1.CustomResourceDefinition{
		ObjectMeta: kube.Meta("", kind.crd(), kube.Labels(operatorName, operatorName)),
		Spec: extensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: extensionsv1.NamespaceScoped,
			Names: extensionsv1.CustomResourceDefinitionNames{
				Kind:       kind.name,
				Plural:     kind.plural,
				ShortNames: kind.shortNames,
			},
			Versions: []extensionsv1.CustomResourceDefinitionVersion{{
				Name:    version,
				Served:  true,
				Storage: true,
				Schema: &extensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &extensionsv1.JSONSchemaProps{XPreserveUnknownFields: &anything},
				},
			}},
		},
	}
}

package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"persia/kube"
)

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

func (k kind) crd() string { return k.plural + "." + group }

// defineKinds registers the operator's kinds: a NatsCluster can never come
// before its kind.
func defineKinds(ctx *pulumi.Context, name string, child pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	var defined []pulumi.CustomResource
	for _, kind := range []kind{clusterKind, serviceRoleKind} {
		crd, err := kube.Register(ctx, name+"-"+kind.plural, definition(kind), child)
		if err != nil {
			return nil, err
		}
		defined = append(defined, crd)
	}
	return defined, nil
}

// definition is just what the operator itself writes at its start
// (pkg/util/kubernetes/crd.go of v0.8.3), so that it finds nothing to change.
func definition(kind kind) *extensionsv1.CustomResourceDefinition {
	anything := true
	return &extensionsv1.CustomResourceDefinition{
		ObjectMeta: kube.Meta("", kind.crd(), operatorLabels()),
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

package nats

import (
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

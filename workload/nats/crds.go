package nats

import (
	sdkextensions "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions/v1"
	sdkmeta "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
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

// defineKinds registers the operator's kinds just as the operator itself would
// at its start (pkg/util/kubernetes/crd.go of v0.8.3): a NatsCluster can never
// come before its kind, and the operator finds nothing to change.
func defineKinds(ctx *pulumi.Context, name string, child pulumi.ResourceOption) ([]pulumi.Resource, error) {
	var defined []pulumi.Resource
	for _, kind := range []kind{clusterKind, serviceRoleKind} {
		crd, err := sdkextensions.NewCustomResourceDefinition(ctx, name+"-"+kind.plural, &sdkextensions.CustomResourceDefinitionArgs{
			Metadata: sdkmeta.ObjectMetaArgs{
				Name:   pulumi.String(kind.crd()),
				Labels: pulumi.ToStringMap(operatorLabels()),
			},
			Spec: sdkextensions.CustomResourceDefinitionSpecArgs{
				Group: pulumi.String(group),
				Scope: pulumi.String("Namespaced"),
				Names: sdkextensions.CustomResourceDefinitionNamesArgs{
					Kind:       pulumi.String(kind.name),
					Plural:     pulumi.String(kind.plural),
					ShortNames: pulumi.ToStringArray(kind.shortNames),
				},
				Versions: sdkextensions.CustomResourceDefinitionVersionArray{
					sdkextensions.CustomResourceDefinitionVersionArgs{
						Name:    pulumi.String(version),
						Served:  pulumi.Bool(true),
						Storage: pulumi.Bool(true),
						Schema: sdkextensions.CustomResourceValidationArgs{
							OpenAPIV3Schema: sdkextensions.JSONSchemaPropsArgs{
								X_kubernetes_preserve_unknown_fields: pulumi.Bool(true),
							},
						},
					},
				},
			},
		}, child)
		if err != nil {
			return nil, err
		}
		defined = append(defined, crd)
	}
	return defined, nil
}

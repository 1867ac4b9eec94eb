package persia

import (
	_ "embed"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"persia/capacity"
	"persia/kube"
	"persia/workload/persia/persiav1"
)

// OperatorNamespace holds PERSIA's own operator, apart from the pods that it makes.
const OperatorNamespace = "persia-operator"

//go:embed operator.yaml
var operatorManifest string

// NewOperator registers the operator with its namespace, identity and kind, after needs. Adopter registers objects
// that Kubernetes has created already.
func NewOperator(r *kube.Registrar, name, image string, adopter pulumi.ProviderResource,
	needs []pulumi.CustomResource) []pulumi.CustomResource {
	crd, err := persiaJobs()
	r.Fail(err)
	objects := r.Component("persia:operator:Operator", name)
	operator := objects.AddOperator(name, kube.Operator{
		Manifest: operatorManifest, Image: image, Requests: capacity.PERSIAOperator,
		Kinds: map[string]*extensionsv1.CustomResourceDefinition{name: crd},
	}, needs)
	// The pods of jobs get no token: the operator names no account for them, and so they have this one. Kubernetes
	// makes it with the namespace, and deletes it with that.
	account := objects.Add(name+"-pods", &corev1.ServiceAccount{
		ObjectMeta:                   kube.Meta(NamespaceName, "default", nil),
		AutomountServiceAccountToken: new(false),
	}, needs, pulumi.Provider(adopter), pulumi.RetainOnDelete(true))
	return kube.Needs(operator, account)
}

//go:generate go tool controller-gen crd:maxDescLen=0 paths=./persiav1 output:crd:dir=.

// persiaJobsText is the CustomResourceDefinition that controller-gen generates from the Go types.
//
//go:embed persia.com_persiajobs.yaml
var persiaJobsText []byte

func persiaJobs() (*extensionsv1.CustomResourceDefinition, error) {
	crd := &extensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(persiaJobsText, crd); err != nil {
		return nil, fmt.Errorf("the definition of %s: %w", persiav1.Kind, err)
	}
	for i := range crd.Spec.Versions {
		quantitiesAreText(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
	}
	return crd, nil
}

// quantitiesAreText no longer lets a quantity be a number. The operator reads all jobs as one list, and one number in
// it, like cpu: 8, would keep it from ever reading any.
func quantitiesAreText(schema *extensionsv1.JSONSchemaProps) {
	if schema.XIntOrString {
		schema.XIntOrString, schema.AnyOf, schema.Type = false, nil, "string"
	}
	for name, property := range schema.Properties {
		quantitiesAreText(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		quantitiesAreText(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil {
		quantitiesAreText(schema.AdditionalProperties.Schema)
	}
}

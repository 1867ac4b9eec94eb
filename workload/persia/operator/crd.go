package operator

import (
	_ "embed"
	"fmt"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"persia/workload/persia/operator/persiav1"
)

//go:generate go tool controller-gen object crd:maxDescLen=0 paths=./persiav1 output:crd:dir=.

// definitionText is the CustomResourceDefinition that controller-gen generates from the Go types.
//
//go:embed persia.com_persiajobs.yaml
var definitionText []byte

func definition() (*extensionsv1.CustomResourceDefinition, error) {
	crd := &extensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definitionText, crd); err != nil {
		return nil, fmt.Errorf("the definition of %s: %w", persiav1.Kind, err)
	}
	for i := range crd.Spec.Versions {
		quantitiesAreText(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
	}
	return crd, nil
}

// quantitiesAreText no longer lets a quantity be a number. The operator reads
// all jobs as one list, and one number in it, like cpu: 8, would keep it from ever
// reading any.
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

// Command definition prints JobSet's CustomResourceDefinition without descriptions, from the
// module that go.mod names.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "definition:", err)
		os.Exit(1)
	}
}

func run() error {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/jobset").Output()
	if err != nil {
		return err
	}
	const name = "jobset.x-k8s.io_jobsets.yaml"
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "config/components/crd/bases", name))
	if err != nil {
		return err
	}
	crd := &extensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		return err
	}
	for i := range crd.Spec.Versions {
		strip(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
		for j := range crd.Spec.Versions[i].AdditionalPrinterColumns {
			crd.Spec.Versions[i].AdditionalPrinterColumns[j].Description = ""
		}
	}
	crd.Status = extensionsv1.CustomResourceDefinitionStatus{}
	written, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	fmt.Printf("# From config/components/crd/bases/%s of sigs.k8s.io/jobset, without descriptions.\n", name)
	_, err = os.Stdout.Write(written)
	return err
}

// strip removes the descriptions of a schema.
func strip(schema *extensionsv1.JSONSchemaProps) {
	schema.Description = ""
	for name, property := range schema.Properties {
		strip(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		strip(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		strip(schema.AdditionalProperties.Schema)
	}
	for _, schemas := range [][]extensionsv1.JSONSchemaProps{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for i := range schemas {
			strip(&schemas[i])
		}
	}
}

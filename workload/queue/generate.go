//go:build ignore

// Generate writes the CustomResourceDefinitions of JobSet and Kueue from their Go modules, of the
// versions that the sandbox runs.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// products are the kinds that the program needs. Without its others, Kueue starts as well: they are for
// several clusters, and for the topology of racks.
var products = []struct {
	module, group, version string
	kinds                  []string
}{
	{"jobset", "jobset.x-k8s.io", "v1alpha2", []string{"jobsets"}},
	{"kueue", "kueue.x-k8s.io", "v1beta2", []string{
		"admissionchecks", "clusterqueues", "cohorts", "localqueues", "provisioningrequestconfigs",
		"resourceflavors", "workloadpriorityclasses", "workloads",
	}},
}

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write() error {
	var definitions []*extensionsv1.CustomResourceDefinition
	for _, product := range products {
		list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/"+product.module)
		list.Dir, list.Stderr = filepath.Join("../../sandbox/toolchain", product.module), os.Stderr
		module, err := list.Output()
		if err != nil {
			return err
		}
		for _, kind := range product.kinds {
			path := filepath.Join(strings.TrimSpace(string(module)), "config/components/crd/bases", product.group+"_"+kind+".yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			definition := &extensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(text, definition); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			reduce(definition, product.version)
			if product.module == "kueue" {
				definition.Annotations, definition.Spec.Conversion = nil, conversion()
			} else {
				columns := definition.Spec.Versions[0].AdditionalPrinterColumns
				for i := range columns {
					columns[i].Description = ""
				}
			}
			definitions = append(definitions, definition)
		}
	}
	text, err := json.Marshal(definitions)
	if err != nil {
		return err
	}
	return os.WriteFile("definitions.json", text, 0o644)
}

// reduce leaves one version of a definition, without descriptions, which are most of the text and which Pulumi would
// keep twice in the state of a stack. A webhook of Kueue converts between upstream's two versions: without Kueue, the
// API server could not list such objects, and could delete neither the definition nor a namespace with objects.
func reduce(definition *extensionsv1.CustomResourceDefinition, name string) {
	versions := slices.DeleteFunc(definition.Spec.Versions,
		func(v extensionsv1.CustomResourceDefinitionVersion) bool { return v.Name != name })
	for i := range versions {
		version := &versions[i]
		version.Storage = true
		if version.Subresources != nil && *version.Subresources == (extensionsv1.CustomResourceSubresources{}) {
			// The API server keeps no empty list of subresources.
			version.Subresources = nil
		}
		withoutDescriptions(version.Schema.OpenAPIV3Schema)
	}
	definition.Spec.Versions = versions
}

func withoutDescriptions(schema *extensionsv1.JSONSchemaProps) {
	schema.Description = ""
	for name, property := range schema.Properties {
		withoutDescriptions(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		withoutDescriptions(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		withoutDescriptions(schema.AdditionalProperties.Schema)
	}
}

// conversion names the webhook that would convert objects of another version. There is none, but
// Kueue's certificates are not ready before it has written one into every definition.
func conversion() *extensionsv1.CustomResourceConversion {
	return &extensionsv1.CustomResourceConversion{
		Strategy: extensionsv1.WebhookConverter,
		Webhook: &extensionsv1.WebhookConversion{
			ClientConfig: &extensionsv1.WebhookClientConfig{
				Service: &extensionsv1.ServiceReference{Namespace: "kueue-system", Name: "kueue-webhook-service", Path: new("/convert")},
			},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// Package definitions holds the custom resource definitions of Kueue as the program
// registers them.
package definitions

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

//go:generate go run ./cmd

// text is a list, made by [Generate] from config/components/crd/bases of the Go module
// sigs.k8s.io/kueue v0.15.2.
//
//go:embed definitions.json
var text []byte

// Version is the version of the API that the definitions have.
const Version = "v1beta2"

// kinds are the definitions that Kueue needs for the program: without the other kinds, Kueue
// starts as well. They are for several clusters, and for the topology of racks.
var kinds = []string{
	"admissionchecks", "clusterqueues", "cohorts", "localqueues", "provisioningrequestconfigs",
	"resourceflavors", "workloadpriorityclasses", "workloads",
}

// All returns the definitions.
func All() ([]*extensionsv1.CustomResourceDefinition, error) {
	var definitions []*extensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(text, &definitions); err != nil {
		return nil, fmt.Errorf("the definitions of Kueue: %w", err)
	}
	return definitions, nil
}

// Generate makes the definitions from the files of Kueue's module, without descriptions,
// which are three quarters of the text, and with one version.
//
// Upstream's definitions have two versions, and a webhook of Kueue converts between them.
// Without Kueue, the API server could not list such objects, and could delete neither the
// definition nor a namespace with objects.
func Generate(module fs.FS) ([]byte, error) {
	var definitions []*extensionsv1.CustomResourceDefinition
	for _, kind := range kinds {
		text, err := fs.ReadFile(module, path.Join("config/components/crd/bases", "kueue.x-k8s.io_"+kind+".yaml"))
		if err != nil {
			return nil, err
		}
		definition := &extensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		if definition, err = reduced(definition); err != nil {
			return nil, err
		}
		definitions = append(definitions, definition)
	}
	return json.Marshal(definitions)
}

// reduced returns a definition with one version, and without descriptions.
func reduced(upstream *extensionsv1.CustomResourceDefinition) (*extensionsv1.CustomResourceDefinition, error) {
	for _, version := range upstream.Spec.Versions {
		if version.Name != Version {
			continue
		}
		version.Storage = true
		if version.Subresources != nil && *version.Subresources == (extensionsv1.CustomResourceSubresources{}) {
			// The API server keeps no empty list of subresources.
			version.Subresources = nil
		}
		withoutDescriptions(version.Schema.OpenAPIV3Schema)
		return &extensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: upstream.Name},
			Spec: extensionsv1.CustomResourceDefinitionSpec{
				Group: upstream.Spec.Group, Names: upstream.Spec.Names, Scope: upstream.Spec.Scope,
				Versions: []extensionsv1.CustomResourceDefinitionVersion{version},
			},
		}, nil
	}
	return nil, fmt.Errorf("%s has no version %s", upstream.Name, Version)
}

func withoutDescriptions(schema *extensionsv1.JSONSchemaProps) {
	schema.Description = ""
	for name, property := range schema.Properties {
		withoutDescriptions(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		withoutDescriptions(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		withoutDescriptions(schema.AdditionalProperties.Schema)
	}
}

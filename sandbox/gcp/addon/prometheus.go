package addon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/GoogleCloudPlatform/prometheus-engine/manifests"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"persia/sandbox/gcp/property"
)

// hasPrometheus reports whether a cluster has Managed Service for Prometheus. One of
// which nothing is said has it.
func hasPrometheus(inputs resource.PropertyMap) bool {
	return property.Truth(property.Object(property.Object(inputs, "monitoringConfig"), "managedPrometheus"), "enabled", true)
}

// applyPrometheus puts the kinds of Managed Service for Prometheus into the control
// plane. Nothing in the sandbox acts on them. They stay when the service is turned
// off, with the objects that the program has yet to delete.
func (p ControlPlane) applyPrometheus(ctx context.Context, inputs resource.PropertyMap) error {
	if !hasPrometheus(inputs) {
		return nil
	}
	definitions, err := prometheusKinds()
	if err != nil {
		return err
	}
	return p.applyKinds(ctx, definitions)
}

// removePrometheus takes the kinds out, and with them all objects of these kinds.
func (p ControlPlane) removePrometheus(ctx context.Context) error {
	definitions, err := prometheusKinds()
	if err != nil {
		return err
	}
	return p.removeKinds(ctx, definitions)
}

// prometheusKinds are Google's own definitions of PodMonitoring and the kinds around
// it, as GKE installs them.
func prometheusKinds() ([]extensionsv1.CustomResourceDefinition, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests.CRDManifest), 4096)
	var definitions []extensionsv1.CustomResourceDefinition
	for {
		var definition extensionsv1.CustomResourceDefinition
		err := decoder.Decode(&definition)
		if errors.Is(err, io.EOF) {
			return definitions, nil
		}
		if err != nil {
			return nil, fmt.Errorf("kinds of Managed Service for Prometheus: %w", err)
		}
		definitions = append(definitions, definition)
	}
}

package addon

import (
	_ "embed"
	"fmt"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"persia/gcp"
)

// provisioningRequests is the definition of ProvisioningRequests, a file of the Go module
// k8s.io/autoscaler/cluster-autoscaler/apis v0.0.0-20240830133931-adfbe7e45277.
//
//go:embed autoscaling.x-k8s.io_provisioningrequests.yaml
var provisioningRequests []byte

// provisioningKinds returns the kind of the requests for queued provisioning. GKE has it since 1.28.3:
// Google's guides install Kueue, and no definition (GoogleCloudPlatform/ai-on-gke, dws-examples).
//
// GKE's webhook refuses several pod sets in the words of the rule (ray-project/ray, issue 57839).
func provisioningKinds() ([]extensionsv1.CustomResourceDefinition, error) {
	var definition extensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(provisioningRequests, &definition); err != nil {
		return nil, fmt.Errorf("kind of queued provisioning: %w", err)
	}
	for _, version := range definition.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		spec := schema.Properties["spec"]
		spec.XValidations = append(spec.XValidations, extensionsv1.ValidationRule{
			Rule:    fmt.Sprintf("self.provisioningClassName != '%s' || self.podSets.size() == 1", gcp.ClassQueued),
			Message: "currently supports only single PodSet per request",
		})
		schema.Properties["spec"] = spec
	}
	return []extensionsv1.CustomResourceDefinition{definition}, nil
}

package gke

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/GoogleCloudPlatform/prometheus-engine/manifests"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"

	"persia/gcp"
	"persia/sandbox/files"
	"persia/sandbox/gcp/google"
)

// AddonLabel is on the objects that GKE puts into a cluster. They stay when the service is turned off or
// the cluster is deleted: the control plane is the sandbox's.
const AddonLabel = "addonmanager.kubernetes.io/mode"

// storageDrivers are the paths in a cluster's body that turn on the drivers of GKE's storage.
var storageDrivers = []string{
	"addonsConfig.gcsFuseCsiDriverConfig.enabled",
	"addonsConfig.gcePersistentDiskCsiDriverConfig.enabled",
	"addonsConfig.gcpFilestoreCsiDriverConfig.enabled",
}

//go:embed addons.yaml
var addonsYAML []byte

var addons = files.Embedded[struct {
	Drivers []storagev1.CSIDriver
	Classes []storagev1.StorageClass
}]("addons.yaml", addonsYAML)

// ApplyCluster puts into the control plane what GKE puts into a cluster, and returns when the API server
// serves it. It refuses a cluster without one of the drivers, which the program always turns on. Nothing
// acts on the kinds of Managed Service for Prometheus.
func (e Engine) ApplyCluster(ctx context.Context, body google.Body) error {
	for _, path := range storageDrivers {
		if !google.Truth(body, path) {
			return fmt.Errorf("%s of %s is off, which is not simulated", path, google.Text(body, "name"))
		}
	}
	served, err := customKinds(google.Truth(body, "monitoringConfig.managedPrometheusConfig.enabled"))
	if err != nil {
		return err
	}
	storage, definitions := e.Client.StorageV1(), e.Extensions.ApiextensionsV1().CustomResourceDefinitions()
	err = errors.Join(
		create(ctx, storage.CSIDrivers().Create, addons().Drivers),
		create(ctx, storage.StorageClasses().Create, addons().Classes),
		create(ctx, definitions.Create, served))
	if err != nil {
		return err
	}
	for _, kind := range served {
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			live, err := definitions.Get(ctx, kind.Name, metav1.GetOptions{})
			return err == nil && apihelpers.IsCRDConditionTrue(live, extensionsv1.Established), err
		})
		if err != nil {
			return fmt.Errorf("await %s: %w", kind.Name, err)
		}
	}
	return nil
}

// create creates the objects that are not there.
func create[T any](ctx context.Context, create func(context.Context, *T, metav1.CreateOptions) (*T, error), objects []T) error {
	for _, object := range objects {
		_, err := create(ctx, &object, metav1.CreateOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsAlreadyExists); err != nil {
			return err
		}
	}
	return nil
}

// provisioningRequests is the definition of ProvisioningRequests, a file of the Go module
// k8s.io/autoscaler/cluster-autoscaler/apis v0.0.0-20240830133931-adfbe7e45277. GKE has it since 1.28.3:
// Google's guides install Kueue, and no definition (GoogleCloudPlatform/ai-on-gke, dws-examples).
//
//go:embed autoscaling.x-k8s.io_provisioningrequests.yaml
var provisioningRequests []byte

//go:embed computeclasses.yaml
var computeClasses []byte

// customKinds returns the kinds that GKE installs: the requests for queued provisioning, compute classes, and Google's
// own definitions of PodMonitoring and the kinds around it.
func customKinds(prometheus bool) ([]extensionsv1.CustomResourceDefinition, error) {
	texts := [][]byte{provisioningRequests, computeClasses}
	if prometheus {
		texts = append(texts, manifests.CRDManifest)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(bytes.Join(texts, []byte("\n---\n"))), 4096)
	var definitions []extensionsv1.CustomResourceDefinition
	for {
		var definition extensionsv1.CustomResourceDefinition
		err := decoder.Decode(&definition)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("kinds of GKE: %w", err)
		}
		metav1.SetMetaDataLabel(&definition.ObjectMeta, AddonLabel, "EnsureExists")
		definitions = append(definitions, definition)
	}
	// GKE's webhook refuses several pod sets in the words of the rule (ray-project/ray, issue 57839).
	for _, version := range definitions[0].Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		spec := schema.Properties["spec"]
		spec.XValidations = append(spec.XValidations, extensionsv1.ValidationRule{
			Rule:    fmt.Sprintf("self.provisioningClassName != '%s' || self.podSets.size() == 1", gcp.ClassQueued),
			Message: "currently supports only single PodSet per request",
		})
		schema.Properties["spec"] = spec
	}
	return definitions, nil
}

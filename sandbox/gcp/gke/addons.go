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
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"

	"persia/gcp"
	"persia/sandbox/gcp/google"
)

// csiDrivers are the drivers of GKE's storage, by the path in a cluster's body that turns one on.
var csiDrivers = map[string]storagev1.CSIDriver{
	"addonsConfig.gcsFuseCsiDriverConfig.enabled":           csiDriver(gcp.DriverGCSFuse, false, true),
	"addonsConfig.gcePersistentDiskCsiDriverConfig.enabled": csiDriver(gcp.DriverPersistentDisk, true, false),
	"addonsConfig.gcpFilestoreCsiDriverConfig.enabled":      csiDriver(gcp.DriverFilestore, false, true),
}

func csiDriver(name string, attach, podInfo bool) storagev1.CSIDriver {
	return storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: &attach, PodInfoOnMount: &podInfo},
	}
}

// storageClasses are the classes of GKE's disks. The first one answers every claim that names none.
var storageClasses = []storagev1.StorageClass{
	storageClass("standard-rwo", storagev1.VolumeBindingWaitForFirstConsumer, map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}),
	storageClass("premium-rwo", storagev1.VolumeBindingWaitForFirstConsumer, nil),
	storageClass("standard", storagev1.VolumeBindingImmediate, nil),
}

func storageClass(name string, mode storagev1.VolumeBindingMode, annotations map[string]string) storagev1.StorageClass {
	return storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: name, Annotations: annotations},
		Provisioner:       gcp.DriverPersistentDisk,
		VolumeBindingMode: &mode,
	}
}

// ApplyCluster puts into the control plane what GKE puts into a cluster, and returns when the API server
// serves it. Nothing acts on the kinds of Managed Service for Prometheus. They stay when the service
// is turned off, with the objects that the program has yet to delete.
func (e Engine) ApplyCluster(ctx context.Context, body google.Body) error {
	client, err := e.Client()
	if err != nil {
		return err
	}
	drivers := client.StorageV1().CSIDrivers()
	for path, driver := range csiDrivers {
		if google.Truth(body, path) {
			_, err = drivers.Create(ctx, &driver, metav1.CreateOptions{})
			err = utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
		} else {
			err = utilerrors.FilterOut(drivers.Delete(ctx, driver.Name, metav1.DeleteOptions{}), apierrors.IsNotFound)
		}
		if err != nil {
			return err
		}
	}
	for _, class := range storageClasses {
		_, err = client.StorageV1().StorageClasses().Create(ctx, &class, metav1.CreateOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsAlreadyExists); err != nil {
			return err
		}
	}
	served, err := customKinds(google.Truth(body, "monitoringConfig.managedPrometheusConfig.enabled"))
	if err != nil {
		return err
	}
	definitions, err := e.Extensions()
	if err != nil {
		return err
	}
	for _, definition := range served {
		_, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, &definition, metav1.CreateOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsAlreadyExists); err != nil {
			return err
		}
	}
	return e.awaitKinds(ctx, served, isEstablished)
}

// RemoveCluster takes out again what ApplyCluster put in, and all objects of the kinds: the control
// plane itself is the sandbox's.
func (e Engine) RemoveCluster(ctx context.Context) error {
	client, err := e.Client()
	if err != nil {
		return err
	}
	for _, driver := range csiDrivers {
		err := client.StorageV1().CSIDrivers().Delete(ctx, driver.Name, metav1.DeleteOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
			return err
		}
	}
	for _, class := range storageClasses {
		err := client.StorageV1().StorageClasses().Delete(ctx, class.Name, metav1.DeleteOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
			return err
		}
	}
	served, err := customKinds(true)
	if err != nil {
		return err
	}
	definitions, err := e.Extensions()
	if err != nil {
		return err
	}
	for _, definition := range served {
		err := definitions.ApiextensionsV1().CustomResourceDefinitions().Delete(ctx, definition.Name, metav1.DeleteOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
			return err
		}
	}
	return e.awaitKinds(ctx, served, func(live *extensionsv1.CustomResourceDefinition) bool { return live == nil })
}

// awaitKinds waits until every definition is as it should be, where nil is one that
// is gone.
func (e Engine) awaitKinds(ctx context.Context, kinds []extensionsv1.CustomResourceDefinition, done func(*extensionsv1.CustomResourceDefinition) bool) error {
	client, err := e.Extensions()
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			live, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, kind.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				live, err = nil, nil
			}
			return err == nil && done(live), err
		})
		if err != nil {
			return fmt.Errorf("await %s: %w", kind.Name, err)
		}
	}
	return nil
}

func isEstablished(live *extensionsv1.CustomResourceDefinition) bool {
	if live == nil {
		return false
	}
	for _, condition := range live.Status.Conditions {
		if condition.Type == extensionsv1.Established {
			return condition.Status == extensionsv1.ConditionTrue
		}
	}
	return false
}

// provisioningRequests is the definition of ProvisioningRequests, a file of the Go module
// k8s.io/autoscaler/cluster-autoscaler/apis v0.0.0-20240830133931-adfbe7e45277. GKE has it since 1.28.3:
// Google's guides install Kueue, and no definition (GoogleCloudPlatform/ai-on-gke, dws-examples).
//
//go:embed autoscaling.x-k8s.io_provisioningrequests.yaml
var provisioningRequests []byte

// customKinds returns the kinds that GKE installs: the requests for queued provisioning, and Google's
// own definitions of PodMonitoring and the kinds around it.
func customKinds(prometheus bool) ([]extensionsv1.CustomResourceDefinition, error) {
	text := provisioningRequests
	if prometheus {
		text = bytes.Join([][]byte{text, manifests.CRDManifest}, []byte("\n---\n"))
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
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

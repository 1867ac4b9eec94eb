package addon

import (
	"context"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	storagev1 "k8s.io/api/storage/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"

	"persia/gcp"
	"persia/sandbox/gcp/property"
)

// ControlPlane is where addons are.
type ControlPlane struct {
	Client     func() (kubernetes.Interface, error)
	Extensions func() (extensions.Interface, error)
}

// Apply puts into the control plane what GKE puts into a cluster.
func (p ControlPlane) Apply(ctx context.Context, inputs resource.PropertyMap) error {
	client, err := p.Client()
	if err != nil {
		return err
	}
	for _, addon := range csiAddons() {
		if addon.enabled(inputs) {
			_, err = client.StorageV1().CSIDrivers().Create(ctx, addon.driver, metav1.CreateOptions{})
			err = utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
		} else {
			err = deleteDriver(ctx, client, addon)
		}
		if err != nil {
			return err
		}
	}
	for _, class := range storageClasses() {
		_, err = client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsAlreadyExists); err != nil {
			return err
		}
	}
	kinds, err := provisioningKinds()
	if err != nil {
		return err
	}
	if err := p.applyKinds(ctx, kinds); err != nil {
		return err
	}
	return p.applyPrometheus(ctx, inputs)
}

// Remove takes out again what Apply put in: the control plane itself is the sandbox's.
func (p ControlPlane) Remove(ctx context.Context) error {
	client, err := p.Client()
	if err != nil {
		return err
	}
	for _, addon := range csiAddons() {
		if err := deleteDriver(ctx, client, addon); err != nil {
			return err
		}
	}
	for _, class := range storageClasses() {
		err := client.StorageV1().StorageClasses().Delete(ctx, class.Name, metav1.DeleteOptions{})
		if err := utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
			return err
		}
	}
	kinds, err := provisioningKinds()
	if err != nil {
		return err
	}
	if err := p.removeKinds(ctx, kinds); err != nil {
		return err
	}
	return p.removePrometheus(ctx)
}

// csiAddon is an addon of GKE that brings a CSI driver.
type csiAddon struct {
	// config is the input below addonsConfig that turns the addon on or off. standard is whether it
	// is on without the input.
	config   string
	standard bool
	driver   *storagev1.CSIDriver
}

func (a csiAddon) enabled(inputs resource.PropertyMap) bool {
	return property.Truth(property.Object(property.Object(inputs, "addonsConfig"), a.config), "enabled", a.standard)
}

// csiAddons returns the addons that the program turns on or off.
func csiAddons() []csiAddon {
	yes, no := true, false
	return []csiAddon{
		{
			config: "gcsFuseCsiDriverConfig",
			driver: &storagev1.CSIDriver{
				ObjectMeta: metav1.ObjectMeta{Name: gcp.DriverGCSFuse},
				Spec:       storagev1.CSIDriverSpec{AttachRequired: &no, PodInfoOnMount: &yes},
			},
		},
		{
			config:   "gcePersistentDiskCsiDriverConfig",
			standard: true,
			driver: &storagev1.CSIDriver{
				ObjectMeta: metav1.ObjectMeta{Name: gcp.DriverPersistentDisk},
				Spec:       storagev1.CSIDriverSpec{AttachRequired: &yes, PodInfoOnMount: &no},
			},
		},
		{
			config: "gcpFilestoreCsiDriverConfig",
			driver: &storagev1.CSIDriver{
				ObjectMeta: metav1.ObjectMeta{Name: gcp.DriverFilestore},
				Spec:       storagev1.CSIDriverSpec{AttachRequired: &no, PodInfoOnMount: &yes},
			},
		},
	}
}

func deleteDriver(ctx context.Context, client kubernetes.Interface, addon csiAddon) error {
	err := client.StorageV1().CSIDrivers().Delete(ctx, addon.driver.Name, metav1.DeleteOptions{})
	return utilerrors.FilterOut(err, apierrors.IsNotFound)
}

// storageClasses returns the classes of GKE's disks. The first one answers every claim that names none.
func storageClasses() []*storagev1.StorageClass {
	class := func(name string, mode storagev1.VolumeBindingMode, annotations map[string]string) *storagev1.StorageClass {
		return &storagev1.StorageClass{
			ObjectMeta:        metav1.ObjectMeta{Name: name, Annotations: annotations},
			Provisioner:       gcp.DriverPersistentDisk,
			VolumeBindingMode: &mode,
		}
	}
	return []*storagev1.StorageClass{
		class("standard-rwo", storagev1.VolumeBindingWaitForFirstConsumer, map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}),
		class("premium-rwo", storagev1.VolumeBindingWaitForFirstConsumer, nil),
		class("standard", storagev1.VolumeBindingImmediate, nil),
	}
}

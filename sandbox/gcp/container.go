package gcp

import (
	"context"
	"errors"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	storagev1 "k8s.io/api/storage/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"persia/gcp"
)

// errNotRunning answers whatever needs the control plane.
var errNotRunning = errors.New("the sandbox does not run: start it with `make up`")

// gke is Google Kubernetes Engine, with one API server for all clusters.
type gke struct {
	// config is nil while the API server does not run.
	config     *rest.Config
	client     func() (kubernetes.Interface, error)
	extensions func() (extensions.Interface, error)
	machines   Machines
	// realPool is the node pool whose node is a real one, or "".
	realPool string
}

func newGKE(config *rest.Config, machines Machines) gke {
	return gke{
		config:   config,
		machines: machines,
		client: sync.OnceValues(func() (kubernetes.Interface, error) {
			if config == nil {
				return nil, errNotRunning
			}
			return kubernetes.NewForConfig(config)
		}),
		extensions: sync.OnceValues(func() (extensions.Interface, error) {
			if config == nil {
				return nil, errNotRunning
			}
			return extensions.NewForConfig(config)
		}),
	}
}

// applyCluster puts into the control plane what GKE puts into a cluster.
func (g gke) applyCluster(ctx context.Context, inputs resource.PropertyMap, _ func(string)) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	for _, addon := range csiAddons() {
		if addon.enabled(inputs) {
			_, err = client.StorageV1().CSIDrivers().Create(ctx, addon.driver, metav1.CreateOptions{})
			err = except(err, apierrors.IsAlreadyExists)
		} else {
			err = deleteDriver(ctx, client, addon)
		}
		if err != nil {
			return err
		}
	}
	_, err = client.StorageV1().StorageClasses().Create(ctx, defaultStorageClass(), metav1.CreateOptions{})
	if err := except(err, apierrors.IsAlreadyExists); err != nil {
		return err
	}
	return g.applyPrometheus(ctx, inputs)
}

// removeCluster takes out again what applyCluster put in: the control plane
// itself is the sandbox's.
func (g gke) removeCluster(ctx context.Context) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	for _, addon := range csiAddons() {
		if err := deleteDriver(ctx, client, addon); err != nil {
			return err
		}
	}
	err = client.StorageV1().StorageClasses().Delete(ctx, defaultStorageClass().Name, metav1.DeleteOptions{})
	if err := except(err, apierrors.IsNotFound); err != nil {
		return err
	}
	return g.removePrometheus(ctx)
}

// csiAddon is an addon of GKE that brings a CSI driver.
type csiAddon struct {
	// config is the input below addonsConfig that turns the addon on or off, and
	// standard what it is without.
	config   string
	standard bool
	driver   *storagev1.CSIDriver
}

func (a csiAddon) enabled(inputs resource.PropertyMap) bool {
	return truth(object(object(inputs, "addonsConfig"), a.config), "enabled", a.standard)
}

// csiAddons are those that the program turns on or off.
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
	return except(err, apierrors.IsNotFound)
}

// defaultStorageClass answers every claim that does not say which class it
// wants.
func defaultStorageClass() *storagev1.StorageClass {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "standard-rwo",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       gcp.DriverPersistentDisk,
		VolumeBindingMode: &wait,
	}
}

// except is err, unless it is one that is expected.
func except(err error, expected func(error) bool) error {
	if expected(err) {
		return nil
	}
	return err
}

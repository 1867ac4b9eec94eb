package gcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// gke is Google Kubernetes Engine, with one API server.
type gke struct {
	config *rest.Config
}

func containerKinds(config *rest.Config) map[tokens.Type]kind {
	gke := gke{config: config}
	return map[tokens.Type]kind{
		"gcp:container/cluster:Cluster": {
			id: clusterID,
			replaceOn: []resource.PropertyKey{"name", "project", "location", "network", "subnetwork",
				"ipAllocationPolicy", "privateClusterConfig", "datapathProvider"},
			apply:  gke.applyCluster,
			remove: gke.removeCluster,
		},
		"gcp:container/nodePool:NodePool": {
			id:        nodePoolID,
			replaceOn: []resource.PropertyKey{"name", "project", "location", "cluster", "initialNodeCount"},
			apply:     gke.applyNodePool,
			read:      gke.readNodePool,
			remove:    gke.removeNodePool,
		},
	}
}

func (g gke) client() (kubernetes.Interface, error) {
	if g.config == nil {
		return nil, errors.New("the sandbox does not run: start it with `make up`")
	}
	return kubernetes.NewForConfig(g.config)
}

func clusterID(inputs resource.PropertyMap) string {
	return fmt.Sprintf("projects/%s/locations/%s/clusters/%s",
		text(inputs, "project"), text(inputs, "location"), text(inputs, "name"))
}

// applyCluster puts into the control plane what GKE puts into each cluster.
func (g gke) applyCluster(ctx context.Context, req request) (resource.PropertyMap, error) {
	client, err := g.client()
	if err != nil {
		return nil, err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	for _, driver := range csiDrivers() {
		_, err := client.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	_, err = client.StorageV1().StorageClasses().Create(ctx, defaultStorageClass(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	certificate, err := certificateAuthority(g.config)
	if err != nil {
		return nil, err
	}
	return properties(map[string]any{
		"endpoint":      strings.TrimPrefix(g.config.Host, "https://"),
		"selfLink":      "https://container.googleapis.com/v1/" + clusterID(req.inputs),
		"masterVersion": strings.TrimPrefix(version.GitVersion, "v") + "-sandbox",
		"masterAuth":    map[string]any{"clusterCaCertificate": certificate},
	}), nil
}

// removeCluster takes out again what applyCluster put in: the control plane is
// the sandbox's.
func (g gke) removeCluster(ctx context.Context, req request) error {
	if truth(req.inputs, "deletionProtection") {
		return errors.New("the cluster is protected: set persia:cluster.deletionProtection to false and run up first")
	}
	client, err := g.client()
	if err != nil {
		return err
	}
	for _, driver := range csiDrivers() {
		err := client.StorageV1().CSIDrivers().Delete(ctx, driver.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	err = client.StorageV1().StorageClasses().Delete(ctx, defaultStorageClass().Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// csiDrivers are GKE's, as far as the program's volumes use them.
func csiDrivers() []*storagev1.CSIDriver {
	yes, no := true, false
	return []*storagev1.CSIDriver{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "gcsfuse.csi.storage.gke.io"},
			Spec:       storagev1.CSIDriverSpec{AttachRequired: &no, PodInfoOnMount: &yes},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "pd.csi.storage.gke.io"},
			Spec:       storagev1.CSIDriverSpec{AttachRequired: &yes, PodInfoOnMount: &no},
		},
	}
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
		Provisioner:       "pd.csi.storage.gke.io",
		VolumeBindingMode: &wait,
	}
}

// certificateAuthority is that of the API server, in base64 as GKE gives it.
func certificateAuthority(config *rest.Config) (string, error) {
	data := config.CAData
	if len(data) == 0 {
		var err error
		if data, err = os.ReadFile(config.CAFile); err != nil {
			return "", fmt.Errorf("certificate authority of the API server: %w", err)
		}
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

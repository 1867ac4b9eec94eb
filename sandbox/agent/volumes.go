package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"persia/gcp"
)

// Annotations by which the volume controller of Kubernetes asks a driver for a volume, and finds out whose a volume is.
const (
	asksProvisioner = "volume.kubernetes.io/storage-provisioner"
	provisionedBy   = "pv.kubernetes.io/provisioned-by"
)

// watchVolumes stands in for GKE's driver of persistent disks: it creates the volumes of claims that
// name a storage class, and deletes them.
func (a *agent) watchVolumes(ctx context.Context, factory informers.SharedInformerFactory) error {
	claims := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { a.provision(ctx, obj.(*corev1.PersistentVolumeClaim)) },
		UpdateFunc: func(_, obj any) { a.provision(ctx, obj.(*corev1.PersistentVolumeClaim)) },
	}
	if _, err := factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(claims); err != nil {
		return err
	}
	volumes := cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) { a.discard(ctx, obj.(*corev1.PersistentVolume)) }}
	_, err := factory.Core().V1().PersistentVolumes().Informer().AddEventHandler(volumes)
	return err
}

func (a *agent) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	if claim.Annotations[asksProvisioner] != gcp.DriverPersistentDisk || claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil {
		return
	}
	name := "pvc-" + string(claim.UID)
	_, err := a.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: gcp.DriverPersistentDisk}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      claim.Spec.Resources.Requests,
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              *claim.Spec.StorageClassName,
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: gcp.DriverPersistentDisk, VolumeHandle: name}},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		a.options.Logger.Warn("create a volume", "claim", claim.Namespace+"/"+claim.Name, "error", err)
	}
}

// discard deletes a volume whose claim is gone.
func (a *agent) discard(ctx context.Context, volume *corev1.PersistentVolume) {
	if volume.Annotations[provisionedBy] != gcp.DriverPersistentDisk ||
		volume.Status.Phase != corev1.VolumeReleased || volume.DeletionTimestamp != nil ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.Spec.StorageClassName == "" {
		return
	}
	err := a.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		a.options.Logger.Warn("delete a volume", "volume", volume.Name, "error", err)
	}
}

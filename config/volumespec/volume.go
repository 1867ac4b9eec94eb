package volumespec

import (
	corev1 "k8s.io/api/core/v1"

	"persia/config/check"
)

// Volume is a checkpoint volume: a PersistentVolume and the claim that binds to it, in
// the namespace of the jobs. It has exactly one source.
type Volume struct {
	// Name is the name of the PersistentVolume.
	Name string `json:"name"`
	// Claim is the name of the PersistentVolumeClaim. Default: the name of the volume
	// with "-claim" appended.
	Claim string `json:"claim,omitempty"`
	// Size is the capacity of the volume and the request of the claim, a quantity like
	// 10Gi. You can increase it. Storage that the stack creates cannot shrink.
	Size string `json:"size" form:"quantity"`
	// AccessModes are the ways in which nodes can mount the volume. Default:
	// ReadWriteOnce for block devices and for directories of one node, and ReadWriteMany
	// for storage that many nodes share.
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty" enum:"ReadWriteOnce,ReadOnlyMany,ReadWriteMany"`
	// ReclaimPolicy determines what happens to the storage when the claim is deleted, as by `pulumi
	// destroy`. With Delete, the CSI driver deletes all checkpoints.
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy,omitempty" default:"Retain" enum:"Retain,Delete"`
	// MountOptions are passed to the driver.
	MountOptions []string `json:"mountOptions,omitempty"`
	// Labels are Kubernetes labels for the volume and the claim.
	Labels map[string]string `json:"labels,omitempty"`

	Sources `json:",inline"`
}

// Resolve fills in defaults that depend on the rest of the stack file.
func (v *Volume) Resolve(context Context) {
	if v.Claim == "" && v.Name != "" {
		v.Claim = v.Name + "-claim"
	}
	source := v.Source()
	if source == nil {
		return
	}
	if len(v.AccessModes) == 0 {
		v.AccessModes = []corev1.PersistentVolumeAccessMode{source.traits().access}
	}
	source.resolve(context)
}

// SizeGiB returns the size in GiB, rounded up, or 0 if it is invalid.
func (v *Volume) SizeGiB() int64 {
	size, err := check.ParseQuantity(v.Size)
	if err != nil {
		return 0
	}
	return (size.Value() + 1<<30 - 1) >> 30
}

// wholeGiB reports whether the size is a whole number of GiB.
func (v *Volume) wholeGiB() bool {
	size, err := check.ParseQuantity(v.Size)
	return err == nil && size.Value()%(1<<30) == 0
}

// Creates reports whether the stack creates the storage of the volume.
func (v *Volume) Creates() bool { return v.Creation() != nil }

// Creation describes what the stack creates for the volume, or returns nil if the storage
// exists already.
func (v *Volume) Creation() *Creation {
	if source := v.Source(); source != nil {
		return source.Creation()
	}
	return nil
}

// DeletesData reports whether `pulumi destroy` deletes the data of the volume.
func (v *Volume) DeletesData() bool {
	creation := v.Creation()
	return v.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete || creation != nil && creation.DeletesData
}

// MountedBySidecar reports whether GKE adds a container to each pod that mounts the
// volume.
func (v *Volume) MountedBySidecar() bool {
	_, ok := v.Source().(*GCSFuse)
	return ok
}

// OnOneNode reports whether the volume is a directory of one node.
func (v *Volume) OnOneNode() bool {
	source := v.Source()
	return source != nil && source.traits().directory
}

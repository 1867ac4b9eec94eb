package config

import (
	corev1 "k8s.io/api/core/v1"
)

// Volume is a checkpoint volume: a PersistentVolume and the claim that binds to
// it, in the namespace of the jobs. Exactly one source is given: HostPath, Local,
// NFS, ISCSI, Filestore, GCSFuse, PersistentDisk or CSI.
type Volume struct {
	// Name is the PersistentVolume's name.
	Name string `json:"name"`
	// Claim is the PersistentVolumeClaim's name. Default Name with "-claim".
	Claim string `json:"claim,omitempty"`
	// Size is the volume's capacity, a quantity like 10Gi, and what the claim asks
	// for. It can grow. Storage that is created never shrinks.
	Size string `json:"size" form:"quantity"`
	// AccessModes are any of ReadWriteOnce, ReadOnlyMany and ReadWriteMany. Default
	// ReadWriteOnce for hostPath, local, iscsi and persistentDisk, and ReadWriteMany
	// for others.
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty" values:"ReadWriteOnce,ReadOnlyMany,ReadWriteMany"`
	// ReclaimPolicy is what becomes of the storage when the claim is deleted, as
	// `pulumi destroy` does: Retain keeps it, Delete has the CSI driver delete it with
	// all checkpoints. Default Retain.
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy,omitempty" values:"Retain,Delete"`
	// MountOptions are options of the mount, passed on to the driver.
	MountOptions []string `json:"mountOptions,omitempty"`
	// Labels are Kubernetes labels of the volume and of the claim.
	Labels map[string]string `json:"labels,omitempty"`

	VolumeSource `json:",inline"`
}

// VolumeSource is where the data of a volume is. Exactly one field is given.
type VolumeSource struct {
	HostPath       *HostPath       `json:"hostPath,omitempty"`
	Local          *Local          `json:"local,omitempty"`
	NFS            *NFS            `json:"nfs,omitempty"`
	ISCSI          *ISCSI          `json:"iscsi,omitempty"`
	Filestore      *Filestore      `json:"filestore,omitempty"`
	GCSFuse        *GCSFuse        `json:"gcsFuse,omitempty"`
	PersistentDisk *PersistentDisk `json:"persistentDisk,omitempty"`
	CSI            *CSI            `json:"csi,omitempty"`
}

// HostPath is a directory of the node: for a stack of one node, or the sandbox.
type HostPath struct {
	// Path is the directory's absolute path. It is made if it is not there.
	Path string `json:"path"`
}

// Local is a directory or a mounted disk of one node, on which all pods that mount
// it then stand.
type Local struct {
	// Path is the directory's absolute path. It must be there.
	Path string `json:"path"`
	// Node is the node's name, as `kubectl get nodes` lists it.
	Node string `json:"node"`
}

// NFS is a directory that an NFS server exports.
type NFS struct {
	// Server is the server's address or name.
	Server string `json:"server"`
	// Path is the absolute path of the exported directory.
	Path string `json:"path"`
}

// ISCSI is a block device behind an iSCSI portal, which one node mounts at a time.
type ISCSI struct {
	// TargetPortal is the portal's address, with its port unless that is 3260.
	TargetPortal string `json:"targetPortal"`
	// IQN is the target's name, like iqn.2001-04.com.example:checkpoints.
	IQN string `json:"iqn"`
	// LUN is the number of the device at the target.
	LUN int `json:"lun"`
	// FSType is the file system. Default ext4.
	FSType string `json:"fsType,omitempty"`
}

// Filestore is a share of a Filestore instance: one that is there, or with Create
// one that is made. It is in the cluster's network.
type Filestore struct {
	// Instance is the instance's name.
	Instance string `json:"instance"`
	// Location is the instance's zone, or its region in the tiers REGIONAL and
	// ENTERPRISE. Default for an instance that is created: the cluster's first zone,
	// or its region.
	Location string `json:"location,omitempty"`
	// Share is the share's name. Default for an instance that is created:
	// checkpoints.
	Share string `json:"share,omitempty"`
	// IP is the instance's address. Default: the instance is asked, which is not
	// possible on an existing cluster.
	IP     string           `json:"ip,omitempty"`
	Create *CreateFilestore `json:"create,omitempty"`
}

// CreateFilestore makes the instance, with the volume's size as its capacity. It
// and its network outlive the stack, and the next `pulumi up` takes them over.
type CreateFilestore struct {
	// Tier is BASIC_HDD, BASIC_SSD, ZONAL, REGIONAL or ENTERPRISE. Default ZONAL. It
	// cannot be changed later.
	Tier string `json:"tier,omitempty" values:"BASIC_HDD,BASIC_SSD,ZONAL,REGIONAL,ENTERPRISE"`
	// KMSKey encrypts the instance: a key of Cloud KMS in the instance's region.
	// Filestore is granted its use. Default: Google's own key. It cannot be changed
	// later.
	KMSKey string `json:"kmsKey,omitempty"`
	// DeleteWithStack has `pulumi destroy` delete the instance with all checkpoints
	// in it. Default false.
	DeleteWithStack bool `json:"deleteWithStack,omitempty"`
}

// GCSFuse is a Cloud Storage bucket, mounted through Cloud Storage FUSE: one that is
// there, or with Create one that is made. The identity of the jobs is granted its
// objects.
type GCSFuse struct {
	// Bucket is the bucket's name, without gs://.
	Bucket  string        `json:"bucket"`
	Sidecar Sidecar       `json:"sidecar,omitempty"`
	Create  *CreateBucket `json:"create,omitempty"`
}

// Sidecar is what the container asks for that GKE puts beside every pod that mounts
// the bucket. It may use more where the node has it. A pod that mounts several
// buckets has one such container, and the largest amounts.
type Sidecar struct {
	// CPU is a quantity. Default 250m.
	CPU string `json:"cpu,omitempty" form:"quantity"`
	// Memory is a quantity. Default 256Mi.
	Memory string `json:"memory,omitempty" form:"quantity"`
	// EphemeralStorage is a quantity: a file that is written is kept there until it
	// is closed. Default 5Gi.
	EphemeralStorage string `json:"ephemeralStorage,omitempty" form:"quantity"`
}

// CreateBucket makes the bucket, with uniform access and without public access. It
// outlives the stack, and the next `pulumi up` takes it over.
type CreateBucket struct {
	// Location is a region, or a dual- or multi-region like NAM4. Default: the
	// cluster's region. It cannot be changed later.
	Location string `json:"location,omitempty"`
	// Versioning keeps what is overwritten or deleted, until DeleteAfterDays if that
	// is given. Default false.
	Versioning bool `json:"versioning,omitempty"`
	// SoftDeleteDays is how long what is deleted can be restored: from 7 to 90 days,
	// or 0 for not at all. Default 7.
	SoftDeleteDays *int `json:"softDeleteDays,omitempty"`
	// DeleteAfterDays has Cloud Storage delete checkpoints that are as old. Default:
	// none are deleted.
	DeleteAfterDays int `json:"deleteAfterDays,omitempty"`
	// KMSKey encrypts the objects: a key of Cloud KMS in the bucket's location. Cloud
	// Storage is granted its use. Default: Google's own key.
	KMSKey string `json:"kmsKey,omitempty"`
	// DeleteWithStack has `pulumi destroy` delete the bucket with all checkpoints in
	// it. Default false.
	DeleteWithStack bool `json:"deleteWithStack,omitempty"`
}

// PersistentDisk is a disk of Compute Engine, which one node mounts at a time: one
// that is there, or with Create one that is made.
type PersistentDisk struct {
	// Disk is the disk's name.
	Disk string `json:"disk"`
	// Zones is the disk's zone, or both zones of a regional disk. Default for a disk
	// that is created: the cluster's first.
	Zones []string `json:"zones,omitempty"`
	// Project is the disk's Google Cloud project. Default: the stack's, which one on
	// an existing cluster has not.
	Project string `json:"project,omitempty"`
	// FSType is the file system. Default ext4.
	FSType string      `json:"fsType,omitempty"`
	Create *CreateDisk `json:"create,omitempty"`
}

// CreateDisk makes the disk, with the volume's size. It outlives the stack, and the
// next `pulumi up` takes it over.
type CreateDisk struct {
	// Type is pd-standard, pd-balanced, pd-ssd or, in one zone, hyperdisk-balanced.
	// Default pd-balanced. It cannot be changed later.
	Type string `json:"type,omitempty" values:"pd-standard,pd-balanced,pd-ssd,hyperdisk-balanced"`
	// KMSKey encrypts the disk: a key of Cloud KMS in the disk's region, or global.
	// Compute Engine is granted its use. Default: Google's own key. It cannot be
	// changed later.
	KMSKey string `json:"kmsKey,omitempty"`
	// DeleteWithStack has `pulumi destroy` delete the disk with all checkpoints on
	// it. Default false.
	DeleteWithStack bool `json:"deleteWithStack,omitempty"`
}

// CSI is a volume of any CSI driver that the cluster has.
type CSI struct {
	// Driver is the driver's name, like nfs.csi.k8s.io.
	Driver string `json:"driver"`
	// VolumeHandle is the volume's name at the driver.
	VolumeHandle string `json:"volumeHandle"`
	// FSType is the file system. Default: the driver's.
	FSType string `json:"fsType,omitempty"`
	// Attributes are what else the driver wants to know of the volume.
	Attributes map[string]string `json:"attributes,omitempty"`
}

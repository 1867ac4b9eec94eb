package config

import (
	"fmt"
	"net"
	"path"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// Sources has a field for each kind of [VolumeSource]. A volume sets exactly one.
type Sources struct {
	HostPath       *HostPath       `json:"hostPath,omitempty"`
	NFS            *NFS            `json:"nfs,omitempty"`
	ISCSI          *ISCSI          `json:"iscsi,omitempty"`
	Filestore      *Filestore      `json:"filestore,omitempty"`
	GCSFuse        *GCSFuse        `json:"gcsFuse,omitempty"`
	PersistentDisk *PersistentDisk `json:"persistentDisk,omitempty"`
	CSI            *CSI            `json:"csi,omitempty"`
}

// VolumeSource is the storage that holds the data of a volume. Sources may have two more methods: resolve
// fills in defaults that depend on the cluster, and checkUsers checks that pods can reach the storage.
type VolumeSource interface {
	// String names the storage for people, like gs://checkpoints.
	fmt.Stringer
	// check checks the fields. The path is of the source.
	check(p *input.Problems, path *field.Path, stack *Stack)
}

// sourceKind has the properties of a kind of source.
type sourceKind struct {
	access    corev1.PersistentVolumeAccessMode // the default access mode
	block     bool                              // a block device, whose file system a second node would corrupt
	directory bool                              // a directory of one node
	deletable bool                              // the CSI driver deletes it with reclaimPolicy Delete
	driver    string                            // the CSI driver that only this kind uses, or ""
	api       string                            // the Google Cloud API that the storage needs, or ""
}

// sourceKinds are the kinds of sources by their fields in the stack file.
var sourceKinds = map[string]sourceKind{
	"hostPath":       {access: corev1.ReadWriteOnce, directory: true},
	"nfs":            {access: corev1.ReadWriteMany},
	"iscsi":          {access: corev1.ReadWriteOnce, block: true},
	"filestore":      {access: corev1.ReadWriteMany, deletable: true, driver: gcp.DriverFilestore, api: "file.googleapis.com"},
	"gcsFuse":        {access: corev1.ReadWriteMany, driver: gcp.DriverGCSFuse, api: "storage.googleapis.com"},
	"persistentDisk": {access: corev1.ReadWriteOnce, block: true, deletable: true, driver: gcp.DriverPersistentDisk, api: "compute.googleapis.com"},
	"csi":            {access: corev1.ReadWriteMany, deletable: true},
}

// volumeFields returns the fields of all kinds of source.
func volumeFields() []string {
	return input.Words(reflect.VisibleFields(reflect.TypeFor[Sources]()), input.JSONName)
}

// Written returns the fields of the sources that the user set.
func (s *Sources) Written() []string {
	var written []string
	for i, name := range volumeFields() {
		if !reflect.ValueOf(s).Elem().Field(i).IsNil() {
			written = append(written, name)
		}
	}
	return written
}

// Field returns the field of the first source that the user set, or "".
func (s *Sources) Field() string { return strings.Join(s.Written()[:min(1, len(s.Written()))], "") }

// kind returns the properties of the source, which are zero without one.
func (s *Sources) kind() sourceKind { return sourceKinds[s.Field()] }

// API returns the Google Cloud API that the source needs, or "".
func (s *Sources) API() string { return s.kind().api }

// VolumeAPIs returns the Google Cloud APIs that some source needs.
func VolumeAPIs() []string {
	var apis []string
	for _, kind := range sourceKinds {
		if kind.api != "" {
			apis = append(apis, kind.api)
		}
	}
	return apis
}

// Source returns the first source that the user set, or nil.
func (s *Sources) Source() VolumeSource {
	for i := range volumeFields() {
		if source := reflect.ValueOf(s).Elem().Field(i); !source.IsNil() {
			return source.Interface().(VolumeSource)
		}
	}
	return nil
}

// Creation has the settings of all storage that the stack creates.
type Creation struct {
	// KMSKey is the Cloud KMS key that encrypts the storage: in the location of a bucket, in the region of the
	// cluster, or, for a disk, also global. Only a bucket's can change later. Default: Google's own.
	KMSKey string `json:"kmsKey,omitempty" form:"kmsKey"`
	// DeleteWithStack is the name of the storage, to have `pulumi destroy` delete it with all
	// checkpoints. Default: it is kept.
	DeleteWithStack string `json:"deleteWithStack,omitempty"`
}

// Creation describes what the stack creates for a volume, or returns nil if the storage exists already.
func (s *Sources) Creation() *Creation {
	switch {
	case s.GCSFuse != nil && s.GCSFuse.Create != nil:
		return &s.GCSFuse.Create.Creation
	case s.Filestore != nil && s.Filestore.Create != nil:
		return &s.Filestore.Create.Creation
	case s.PersistentDisk != nil && s.PersistentDisk.Create != nil:
		return &s.PersistentDisk.Create.Creation
	}
	return nil
}

// check checks the settings of storage with a name, and reports whether the stack can create storage. It
// requires DeleteWithStack to name the storage, so that a setting copied to another volume deletes nothing.
func (c Creation) check(p *input.Problems, path *field.Path, stack *Stack, name string) bool {
	if stack.existing() {
		p.Forbidden(path, "on an existing cluster, the stack creates nothing in Google Cloud; create the storage yourself, and remove create")
		return false
	}
	if c.DeleteWithStack != "" && c.DeleteWithStack != name {
		p.Invalid(path.Child("deleteWithStack"), c.DeleteWithStack, "must repeat the name of the storage that is deleted with all checkpoints; write %q, or remove it to keep the data", name)
	}
	return true
}

// HostPath is a directory of the node on which a pod runs. The data is lost with the node.
type HostPath struct {
	// Path is the absolute path of the directory, which Kubernetes creates if necessary. On
	// Container-Optimized OS, only directories below /home, /mnt/disks, /mnt/stateful_partition,
	// /run, /tmp and /var are writable; /mnt/disks, /run and /tmp are in memory.
	Path string `json:"path" form:"directory"`
}

func (h *HostPath) String() string { return "directory " + h.Path + " of the node" }

func (h *HostPath) check(p *input.Problems, at *field.Path, _ *Stack) {
	if path.IsAbs(h.Path) && path.Clean(h.Path) == h.Path && h.Path != "/" {
		checkSystemDirectory(p, at.Child("path"), h.Path)
	}
}

func (h *HostPath) checkUsers(p *input.Problems, at *field.Path, users volumeUsers) {
	if users.nodes() > 1 {
		p.Invalid(at, h.Path, "is a different directory on each node, but the pods that mount the volume run on up to %d nodes (pools %s); use gcsFuse or persistentDisk, or one pool with one node",
			users.nodes(), strings.Join(users.names(), ", "))
		return
	}
	for _, pool := range users.Pools {
		checkWritable(p, at.Child("path"), h.Path, pool)
	}
}

// NFS is a directory that an NFS server exports.
type NFS struct {
	// Server is the address or host name of the server.
	Server string `json:"server" form:"host"`
	// Path is the absolute path of the exported directory.
	Path string `json:"path"`
}

func (n *NFS) String() string { return "nfs://" + n.Server + n.Path }

func (n *NFS) check(p *input.Problems, path *field.Path, _ *Stack) {
	if n.Path != "/" {
		input.Form(p, path.Child("path"), "directory", n.Path)
	}
}

// ISCSI is a block device behind an iSCSI portal. One node at a time can mount it.
type ISCSI struct {
	// TargetPortal is the address of the portal. Add the port unless it is 3260.
	TargetPortal string `json:"targetPortal"`
	// IQN is the name of the target, like iqn.2001-04.com.example:checkpoints.
	IQN string `json:"iqn" form:"iqn"`
	// LUN is the logical unit number of the device on the target.
	LUN int `json:"lun" min:"0" max:"255"`
	// FSType is the file system.
	FSType string `json:"fsType,omitempty" default:"ext4" enum:"btrfs,ext2,ext3,ext4,xfs"`
}

// Portal returns the host and the port of the portal.
func (s *ISCSI) Portal() (host, port string) {
	if host, port, err := net.SplitHostPort(s.TargetPortal); err == nil {
		return host, port
	}
	return s.TargetPortal, "3260"
}

func (s *ISCSI) String() string { return fmt.Sprintf("iSCSI target %s, LUN %d", s.IQN, s.LUN) }

func (s *ISCSI) check(p *input.Problems, path *field.Path, _ *Stack) {
	portal := path.Child("targetPortal")
	host, port := s.Portal()
	if number, err := strconv.Atoi(port); err != nil || len(validation.IsValidPortNum(number)) > 0 {
		p.Invalid(portal, s.TargetPortal, "must have a port from 1 to 65535; omit it for 3260")
	}
	input.Form(p, portal, "host", host)
}

// checkUsers refuses nodes without an iSCSI initiator.
func (s *ISCSI) checkUsers(p *input.Problems, path *field.Path, users volumeUsers) {
	for _, pool := range users.Pools {
		if pool.ImageType == gcp.ImageCOS {
			p.Invalid(path, s.TargetPortal, "cannot be mounted on the nodes of pool %s, because Container-Optimized OS has no iSCSI initiator; give the pool imageType: UBUNTU_CONTAINERD, or use persistentDisk", pool.Name)
		}
	}
}

// CSI is a volume of any CSI driver in the cluster.
type CSI struct {
	// Driver is the name of the driver, like nfs.csi.k8s.io.
	Driver string `json:"driver"`
	// VolumeHandle is the ID by which the driver knows the volume.
	VolumeHandle string `json:"volumeHandle"`
	// FSType is the file system. Default: the driver's default.
	FSType string `json:"fsType,omitempty"`
	// Attributes are additional volume attributes that the driver accepts.
	Attributes map[string]string `json:"attributes,omitempty"`
}

func (c *CSI) String() string { return c.Driver + " " + c.VolumeHandle }

func (c *CSI) check(p *input.Problems, path *field.Path, _ *Stack) {
	for name, kind := range sourceKinds {
		if c.Driver != "" && c.Driver == kind.driver {
			p.Invalid(path.Child("driver"), c.Driver, "is the driver of a source with its own rules; write %s", name)
		}
	}
}

package config

import (
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// sourceKind has the properties of a kind of source.
type sourceKind struct {
	access    accessMode // the default access mode
	block     bool       // a block device, whose file system a second node would corrupt
	directory bool       // a directory of one node
	deletable bool       // the CSI driver deletes it with reclaimPolicy Delete
	driver    string     // the CSI driver that only this kind uses, or ""
	api       string     // the Google Cloud API that the storage needs, or ""
}

// sourceKinds are the kinds of sources by their fields in the stack file.
var sourceKinds = map[string]sourceKind{
	"hostPath":  {access: corev1.ReadWriteOnce, directory: true},
	"nfs":       {access: corev1.ReadWriteMany},
	"iscsi":     {access: corev1.ReadWriteOnce, block: true},
	"filestore": {access: corev1.ReadWriteMany, deletable: true, driver: gcp.DriverFilestore, api: "file.googleapis.com"},
	"gcsFuse":   {access: corev1.ReadWriteMany, driver: gcp.DriverGCSFuse, api: "storage.googleapis.com"},
	"persistentDisk": {access: corev1.ReadWriteOnce, block: true, deletable: true, driver: gcp.DriverPersistentDisk,
		api: "compute.googleapis.com"},
	"csi": {access: corev1.ReadWriteMany, deletable: true},
}

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

// Creation has the settings of all storage that the stack creates.
type Creation struct {
	// KMSKey is the Cloud KMS key that encrypts the storage: in the location of a bucket, in the region of the
	// cluster, or, for a disk, also global. Only a bucket's can change later. Default: Google's own.
	KMSKey string `json:"kmsKey,omitempty" form:"kmsKey"`
	// DeleteWithStack is the name of the storage, to have `pulumi destroy` delete it with all
	// checkpoints. Default: it is kept.
	DeleteWithStack string `json:"deleteWithStack,omitempty"`
}

// check checks the settings of storage with a name, and reports whether the stack can create storage. It
// requires DeleteWithStack to name the storage, so that a setting copied to another volume deletes nothing.
func (c Creation) check(p *input.Problems, path *field.Path, site *Site, name string) bool {
	if site.existing() {
		p.Forbidden(path, "on an existing cluster, the stack creates nothing in Google Cloud; create the storage yourself, and remove create")
		return false
	}
	if c.DeleteWithStack != "" && c.DeleteWithStack != name {
		p.Invalid(path.Child("deleteWithStack"), c.DeleteWithStack, "must repeat the name of the storage that is deleted with all "+
			"checkpoints; write %q, or remove it to keep the data", name)
	}
	return true
}

// volumeUsers are the pods that mount a volume.
type volumeUsers struct {
	Pools    []Pool // where the pods may run
	ReadOnly bool   // no pod writes
	OnePod   bool   // there is one pod, and the storage may restrict its nodes
}

// nodes returns the maximum number of nodes of all pools.
func (u volumeUsers) nodes() int {
	nodes := 0
	for _, pool := range u.Pools {
		nodes += pool.MostNodes()
	}
	return nodes
}

// names lists the names of the pools.
func (u volumeUsers) names() string {
	return strings.Join(input.Words(u.Pools, func(pool Pool) string { return pool.Name }), ", ")
}

// HostPath is a directory of the node on which a pod runs. The data is lost with the node.
type HostPath struct {
	// Path is an absolute path, which Kubernetes creates if necessary. On Container-Optimized OS, only directories
	// below /home, /mnt/disks, /mnt/stateful_partition, /run, /tmp and /var are writable; /mnt/disks, /run and /tmp
	// are in memory.
	Path string `json:"path" form:"directory"`
}

func (h *HostPath) String() string { return "directory " + h.Path + " of the node" }

func (h *HostPath) check(p *input.Problems, at *field.Path, _ *Site) {
	if path.IsAbs(h.Path) && path.Clean(h.Path) == h.Path && h.Path != "/" {
		checkSystemDirectory(p, at.Child("path"), h.Path)
	}
}

func (h *HostPath) checkUsers(p *input.Problems, at *field.Path, users volumeUsers) {
	if users.nodes() > 1 {
		p.Invalid(at, h.Path, "is a different directory on each node, but the pods that mount the volume run on up to %d nodes "+
			"(pools %s); use gcsFuse or persistentDisk, or one pool with one node", users.nodes(), users.names())
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

func (n *NFS) check(p *input.Problems, path *field.Path, _ *Site) {
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
	// LUN is the logical unit number.
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

func (s *ISCSI) check(p *input.Problems, path *field.Path, _ *Site) {
	portal := path.Child("targetPortal")
	host, port := s.Portal()
	if number, err := strconv.Atoi(port); err != nil || len(validation.IsValidPortNum(number)) > 0 {
		p.Instead(portal, s.TargetPortal, host, "must have a port from 1 to 65535, or none for 3260")
	}
	input.Form(p, portal, "host", host)
}

// checkUsers refuses nodes without an iSCSI initiator.
func (s *ISCSI) checkUsers(p *input.Problems, path *field.Path, users volumeUsers) {
	for _, pool := range users.Pools {
		if pool.ImageType == gcp.ImageCOS {
			p.Invalid(path, s.TargetPortal, "cannot be mounted on the nodes of pool %s, because Container-Optimized OS has no iSCSI "+
				"initiator; give the pool imageType: UBUNTU_CONTAINERD, or use persistentDisk", pool.Name)
		}
	}
}

// CSI is a volume of any CSI driver in the cluster.
type CSI struct {
	// Driver is the name of the driver, like nfs.csi.k8s.io.
	Driver string `json:"driver"`
	// VolumeHandle is the ID by which the driver knows the volume.
	VolumeHandle string `json:"volumeHandle"`
	// FSType is the file system, by default the driver's.
	FSType string `json:"fsType,omitempty"`
	// Attributes are volume attributes for the driver.
	Attributes map[string]string `json:"attributes,omitempty"`
}

func (c *CSI) String() string { return c.Driver + " " + c.VolumeHandle }

func (c *CSI) check(p *input.Problems, path *field.Path, _ *Site) {
	for name, kind := range sourceKinds {
		if c.Driver != "" && c.Driver == kind.driver {
			p.Invalid(path.Child("driver"), c.Driver, "is the driver of a source with its own rules; write %s", name)
		}
	}
}

// checkSystemDirectory refuses directories of the node's own software.
func checkSystemDirectory(p *input.Problems, at *field.Path, directory string) {
	if system := gcp.SystemDirectory(directory); system != "" {
		p.Invalid(at, directory, "overlaps with %s, which belongs to the node; use your own directory, like /var/lib/data", system)
	}
}

// checkWritable refuses directories that the nodes of a pool cannot create.
func checkWritable(p *input.Problems, at *field.Path, directory string, pool Pool) {
	if pool.ImageType == gcp.ImageCOS && path.IsAbs(directory) && gcp.SystemDirectory(directory) == "" && !gcp.WritableOnCOS(directory) {
		p.Invalid(at, directory, "cannot be created on the nodes of pool %s, because the root file system of Container-Optimized OS "+
			"is read-only; use a directory below %s, like /var/lib/data, or give the pool imageType: %s",
			pool.Name, input.Or(gcp.COSWritable), gcp.ImageUbuntu)
	}
}

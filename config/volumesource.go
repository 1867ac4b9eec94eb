package config

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// HostPath is a directory of the node on which a pod runs. The data is lost with the node.
type HostPath struct {
	outside

	// Path is the absolute path of the directory, which Kubernetes creates if necessary. On
	// Container-Optimized OS, only directories below /home, /mnt/disks, /mnt/stateful_partition,
	// /run, /tmp and /var are writable; /mnt/disks, /run and /tmp are in memory.
	Path string `json:"path" form:"directory"`
}

func (h *HostPath) Field() string  { return "hostPath" }
func (h *HostPath) String() string { return "directory " + h.Path + " of the node" }

func (h *HostPath) Identity() string {
	if h.Path == "" {
		return ""
	}
	return "hostPath " + clean(h.Path)
}

func (h *HostPath) traits() traits { return traits{access: corev1.ReadWriteOnce, directory: true} }

func (h *HostPath) check(p *input.Problems, path *field.Path, _ *Stack) {
	if system := gcp.SystemDirectory(h.Path); strings.HasPrefix(h.Path, "/") && h.Path != "/" && clean(h.Path) == h.Path && system != "" {
		p.Invalid(path.Child("path"), h.Path, "overlaps with %s, which belongs to the node; use your own directory, like /var/lib/persia", system)
	}
}

func (h *HostPath) checkUsers(p *input.Problems, path *field.Path, users volumeUsers) {
	if users.nodes() > 1 {
		p.Invalid(path, h.Path, "is a different directory on each node, but the pods that mount the volume run on up to %d nodes (pools %s); use gcsFuse or persistentDisk, or one pool with one node",
			users.nodes(), strings.Join(users.names(), ", "))
		return
	}
	for _, pool := range users.Pools {
		if pool.COS && strings.HasPrefix(h.Path, "/") && !gcp.WritableOnCOS(h.Path) {
			p.Invalid(path.Child("path"), h.Path, "cannot be created on the nodes of pool %s, because the root file system of Container-Optimized OS is read-only; use a directory below %s, like /var/lib/persia, or give the pool imageType: UBUNTU_CONTAINERD",
				pool.Name, input.Or(gcp.COSWritable()))
			return
		}
	}
}

// NFS is a directory that an NFS server exports.
type NFS struct {
	outside

	// Server is the address or host name of the server.
	Server string `json:"server" form:"host"`
	// Path is the absolute path of the exported directory.
	Path string `json:"path"`
}

func (n *NFS) Field() string  { return "nfs" }
func (n *NFS) String() string { return "nfs://" + n.Server + n.Path }

func (n *NFS) Identity() string {
	if n.Server == "" {
		return ""
	}
	return "nfs " + n.Server + ":" + clean(n.Path)
}

func (n *NFS) traits() traits { return traits{access: corev1.ReadWriteMany} }

func (n *NFS) check(p *input.Problems, path *field.Path, _ *Stack) {
	if n.Path != "/" {
		input.Directory(p, path.Child("path"), n.Path)
	}
}

// ISCSI is a block device behind an iSCSI portal. One node at a time can mount it.
type ISCSI struct {
	outside

	// TargetPortal is the address of the portal. Add the port unless it is 3260.
	TargetPortal string `json:"targetPortal"`
	// IQN is the name of the target, like iqn.2001-04.com.example:checkpoints.
	IQN string `json:"iqn"`
	// LUN is the logical unit number of the device on the target.
	LUN int `json:"lun" min:"0" max:"255"`
	// FSType is the file system.
	FSType string `json:"fsType,omitempty" default:"ext4"`
}

// iqnForm matches the names of targets that Kubernetes accepts (RFC 3720, 3.2.6.3).
var iqnForm = regexp.MustCompile(`^(iqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.-]+(:.*)?|eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]{32})$`)

// Portal returns the host and the port of the portal.
func (s *ISCSI) Portal() (host, port string) {
	if host, port, err := net.SplitHostPort(s.TargetPortal); err == nil {
		return host, port
	}
	return s.TargetPortal, "3260"
}

func (s *ISCSI) Field() string  { return "iscsi" }
func (s *ISCSI) String() string { return fmt.Sprintf("iSCSI target %s, LUN %d", s.IQN, s.LUN) }

func (s *ISCSI) Identity() string {
	if s.IQN == "" {
		return ""
	}
	return fmt.Sprintf("iscsi %s lun %d", s.IQN, s.LUN)
}

func (s *ISCSI) traits() traits { return traits{access: corev1.ReadWriteOnce, block: true} }

func (s *ISCSI) check(p *input.Problems, path *field.Path, _ *Stack) {
	portal := path.Child("targetPortal")
	host, port := s.Portal()
	if number, err := strconv.Atoi(port); err != nil || len(validation.IsValidPortNum(number)) > 0 {
		p.Invalid(portal, s.TargetPortal, "must have a port from 1 to 65535; omit it for 3260")
	}
	input.Host(p, portal, host)
	input.OneOf(p, path.Child("fsType"), s.FSType, gcp.FileSystems...)
	switch {
	case s.IQN == "":
		p.Required(path.Child("iqn"), "write the name of the target, like iqn.2001-04.com.example:checkpoints")
	case !iqnForm.MatchString(s.IQN):
		p.Invalid(path.Child("iqn"), s.IQN, "must be the name of a target, like iqn.2001-04.com.example:checkpoints")
	}
}

// checkUsers refuses nodes without an iSCSI initiator.
func (s *ISCSI) checkUsers(p *input.Problems, path *field.Path, users volumeUsers) {
	for _, pool := range users.Pools {
		if pool.COS {
			p.Invalid(path, s.TargetPortal, "cannot be mounted on the nodes of pool %s, because Container-Optimized OS has no iSCSI initiator; give the pool imageType: UBUNTU_CONTAINERD, or use persistentDisk", pool.Name)
		}
	}
}

// CSI is a volume of any CSI driver in the cluster.
type CSI struct {
	outside

	// Driver is the name of the driver, like nfs.csi.k8s.io.
	Driver string `json:"driver"`
	// VolumeHandle is the ID by which the driver knows the volume.
	VolumeHandle string `json:"volumeHandle"`
	// FSType is the file system. Default: the driver's default.
	FSType string `json:"fsType,omitempty"`
	// Attributes are additional volume attributes that the driver accepts.
	Attributes map[string]string `json:"attributes,omitempty"`
}

func (c *CSI) Field() string  { return "csi" }
func (c *CSI) String() string { return c.Driver + " " + c.VolumeHandle }

func (c *CSI) Identity() string {
	if c.VolumeHandle == "" {
		return ""
	}
	return "csi " + c.Driver + " " + c.VolumeHandle
}

func (c *CSI) traits() traits { return traits{access: corev1.ReadWriteMany, deletable: true} }

func (c *CSI) check(p *input.Problems, path *field.Path, _ *Stack) {
	input.CSIDriver(p, path.Child("driver"), c.Driver)
	if c.VolumeHandle == "" {
		p.Required(path.Child("volumeHandle"), "write the name that the driver gives the volume")
	}
	for _, kind := range volumeKinds() {
		if c.Driver != "" && c.Driver == kind.traits().driver {
			p.Invalid(path.Child("driver"), c.Driver, "is the driver of a source with its own rules; write %s", kind.Field())
		}
	}
}

package volumespec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// HostPath is a directory of the node on which a pod runs. The data is lost with the node.
type HostPath struct {
	outside

	// Path is the absolute path of the directory, which Kubernetes creates if necessary. On
	// Container-Optimized OS, only directories below /home, /mnt/disks, /mnt/stateful_partition,
	// /run, /tmp and /var are writable; /mnt/disks, /run and /tmp are in memory.
	Path string `json:"path"`
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

func (h *HostPath) check(p *check.Problems, path *field.Path, _ Context) {
	checkOwnDirectory(p, path.Child("path"), h.Path)
}

// checkOwnDirectory checks a directory of a node, and refuses directories of its software.
func checkOwnDirectory(p *check.Problems, at *field.Path, directory string) {
	check.Directory(p, at, directory)
	if system := gcp.SystemDirectory(directory); strings.HasPrefix(directory, "/") && directory != "/" && clean(directory) == directory && system != "" {
		p.Invalid(at, directory, "overlaps with %s, which belongs to the node; use your own directory, like /var/lib/persia", system)
	}
}

func (h *HostPath) checkUsers(p *check.Problems, path *field.Path, users Users) {
	if users.nodes() > 1 {
		p.Invalid(path, h.Path, "is a different directory on each node, but the pods that mount the volume run on up to %d nodes (pools %s); use gcsFuse or persistentDisk, or one pool with one node",
			users.nodes(), strings.Join(users.names(), ", "))
		return
	}
	for _, pool := range users.Pools {
		if pool.COS && strings.HasPrefix(h.Path, "/") && !gcp.WritableOnCOS(h.Path) {
			p.Invalid(path.Child("path"), h.Path, "cannot be created on the nodes of pool %s, because the root file system of Container-Optimized OS is read-only; use a directory below %s, like /var/lib/persia, or give the pool imageType: UBUNTU_CONTAINERD",
				pool.Name, check.Or(gcp.COSWritable()))
			return
		}
	}
}

package poolspec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// Installer names the installer of the NVIDIA driver on the nodes.
type Installer string

// The installers. GKE's own and a DaemonSet exclude each other, so a stack has exactly one
// for all of its GPU pools.
const (
	// InstallerManaged lets GKE install the driver.
	InstallerManaged Installer = "managed"
	// InstallerUbuntu is NVIDIA's installer DaemonSet for nodes with Ubuntu.
	InstallerUbuntu Installer = "ubuntu-daemonset"
	// InstallerCOS is the installer DaemonSet for Container-Optimized OS.
	InstallerCOS Installer = "cos-daemonset"
)

// NVIDIADriver says how all GPU nodes of the stack get their driver.
type NVIDIADriver struct {
	// Installer selects how the driver is installed.
	Installer Installer `json:"installer,omitempty" default:"managed" enum:"managed,ubuntu-daemonset,cos-daemonset"`
	// Version is DEFAULT (the default) or LATEST with managed, and a driver version like
	// 550.90.12 with ubuntu-daemonset. Omit it with cos-daemonset.
	Version string `json:"version,omitempty"`
}

// ubuntuDrivers are the versions that the installer for Ubuntu supports
// (GoogleCloudPlatform/container-engine-accelerators,
// nvidia-driver-installer/ubuntu, daemonset-preloaded-R*.yaml).
var ubuntuDrivers = []string{"535.161.07", "550.90.12", "570.124.06", "580.65.06"}

// oldUbuntuDriver is a version that the installer has a manifest for, but GKE 1.31 and later
// cannot load.
const oldUbuntuDriver = "525.105.17"

// Check checks the driver, and that it works on all GPU pools. The paths are of the driver
// and of the list of pools.
func (d NVIDIADriver) Check(p *check.Problems, path, poolsPath *field.Path, pools []Pool) {
	version := path.Child("version")
	image, reason := gcp.ImageCOS, "the installer "+string(d.Installer)
	switch d.Installer {
	case InstallerManaged:
		if !check.OneOf(p, version, d.Version, "DEFAULT", "LATEST") || d.Version == "DEFAULT" {
			return // GKE installs it on every image
		}
		reason = "nvidiaDriver.version LATEST"
	case InstallerUbuntu:
		switch d.Version {
		case "":
		case oldUbuntuDriver:
			p.Invalid(version, d.Version, "does not work on GKE 1.31 and later; write %s", check.Or(ubuntuDrivers))
		default:
			check.OneOf(p, version, d.Version, ubuntuDrivers...)
		}
		image = gcp.ImageUbuntu
	case InstallerCOS:
		if d.Version != "" {
			p.Forbidden(version, "with the installer cos-daemonset, the node image determines the version; remove %q", d.Version)
		}
	default:
		return // reported by the enumeration
	}
	for i, pool := range pools {
		if pool.GPU != nil {
			d.checkPool(p, poolsPath.Index(i), pool, image, reason)
		}
	}
}

// checkPool checks that the driver, which works only on one node image, works on a GPU pool.
func (d NVIDIADriver) checkPool(p *check.Problems, path *field.Path, pool Pool, image, reason string) {
	if pool.ImageType != image && (pool.ImageType == gcp.ImageCOS || pool.ImageType == gcp.ImageUbuntu) {
		p.Invalid(path.Child("imageType"), pool.ImageType,
			"must be %s on a GPU pool, as %s works on no other; write %s or choose another NVIDIA driver", image, reason, image)
	}
	if d.Installer != InstallerManaged && pool.SecureBoot != nil && *pool.SecureBoot {
		p.Invalid(path.Child("secureBoot"), true,
			"refuses the NVIDIA driver of the installer %s, which is not signed; remove it, or choose the installer %s", d.Installer, InstallerManaged)
	}
	if d.Installer == InstallerUbuntu && pool.GPU.Partition != "" {
		p.Invalid(path.Child("gpu", "partition"), pool.GPU.Partition,
			"is not made by the installer %s; remove it, or choose the installer %s or %s", InstallerUbuntu, InstallerManaged, InstallerCOS)
	}
}

package poolspec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// Installer says what installs the NVIDIA driver on the nodes.
type Installer string

// The installers. GKE's own and a DaemonSet exclude each other, so that a stack
// has exactly one for all of its GPU pools.
const (
	// InstallerManaged leaves the driver to GKE.
	InstallerManaged Installer = "managed"
	// InstallerUbuntu is NVIDIA's installer DaemonSet for nodes with Ubuntu.
	InstallerUbuntu Installer = "ubuntu-daemonset"
	// InstallerCOS is the installer DaemonSet for Container-Optimized OS.
	InstallerCOS Installer = "cos-daemonset"
)

// NVIDIADriver says how all GPU nodes of the stack get their driver.
type NVIDIADriver struct {
	// Installer is what installs the driver.
	Installer Installer `json:"installer,omitempty" default:"managed" enum:"managed,ubuntu-daemonset,cos-daemonset"`
	// Version is DEFAULT (the default) or LATEST with managed, and a driver version like
	// 550.90.12 with ubuntu-daemonset, where the default is the image's own. Leave it
	// out with cos-daemonset, because the image determines the version.
	Version string `json:"version,omitempty"`
}

// ubuntuDrivers are the versions that the installer for Ubuntu offers
// (GoogleCloudPlatform/container-engine-accelerators,
// nvidia-driver-installer/ubuntu).
var ubuntuDrivers = []string{"525.105.17", "535.161.07", "550.90.12", "570.124.06"}

// driverChecker checks the GPU pools of a stack against its driver.
type driverChecker struct {
	*check.Problems
	path  *field.Path
	pools []Pool
}

// Check checks the driver, and that the node pools are such that it works on them.
// The paths are those of the driver and of the list of pools.
func (d NVIDIADriver) Check(p *check.Problems, path, poolsPath *field.Path, pools []Pool) {
	c := &driverChecker{p, poolsPath, pools}
	version := path.Child("version")
	switch d.Installer {
	case InstallerManaged:
		if check.OneOf(p, version, d.Version, "DEFAULT", "LATEST") && d.Version == "LATEST" {
			c.gpuImages(gcp.ImageCOS, "nvidiaDriver.version LATEST")
		}
	case InstallerUbuntu:
		if d.Version != "" {
			check.OneOf(p, version, d.Version, ubuntuDrivers...)
		}
		c.gpuImages(gcp.ImageUbuntu, "the installer ubuntu-daemonset")
		c.unsignedDriver(d)
		c.noPartitions()
	case InstallerCOS:
		if d.Version != "" {
			p.Forbidden(version, "with the installer cos-daemonset, the node image determines the version; remove %q", d.Version)
		}
		c.gpuImages(gcp.ImageCOS, "the installer cos-daemonset")
		c.unsignedDriver(d)
	}
}

// gpuImages checks that all GPU pools have the image that the driver needs.
func (c *driverChecker) gpuImages(image, reason string) {
	for i, pool := range c.pools {
		if pool.GPU == nil || pool.ImageType == image || (pool.ImageType != gcp.ImageCOS && pool.ImageType != gcp.ImageUbuntu) {
			continue
		}
		c.Invalid(c.path.Index(i).Child("imageType"), pool.ImageType,
			"must be %s on a GPU pool, as %s works on no other; write %s or choose another NVIDIA driver", image, reason, image)
	}
}

// unsignedDriver checks that the nodes of all GPU pools load a driver that nobody
// they trust has signed.
func (c *driverChecker) unsignedDriver(d NVIDIADriver) {
	for i, pool := range c.pools {
		if pool.GPU != nil && pool.SecureBoot != nil && *pool.SecureBoot {
			c.Invalid(c.path.Index(i).Child("secureBoot"), true,
				"refuses the NVIDIA driver of the installer %s, which is not signed; remove it, or choose the installer %s", d.Installer, InstallerManaged)
		}
	}
}

// noPartitions refuses partitions where nothing makes them: NVIDIA's installer for
// Ubuntu leaves GPUs whole.
func (c *driverChecker) noPartitions() {
	for i, pool := range c.pools {
		if pool.GPU != nil && pool.GPU.Partition != "" {
			c.Invalid(c.path.Index(i).Child("gpu", "partition"), pool.GPU.Partition,
				"is not made by the installer %s; remove it, or choose the installer %s or %s", InstallerUbuntu, InstallerManaged, InstallerCOS)
		}
	}
}

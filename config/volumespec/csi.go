package volumespec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

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

func (c *CSI) check(p *check.Problems, path *field.Path, context Context) {
	check.CSIDriver(p, path.Child("driver"), c.Driver)
	if c.VolumeHandle == "" {
		p.Required(path.Child("volumeHandle"), "write the name that the driver gives the volume")
	}
	check.FileSystem(p, path.Child("fsType"), c.FSType)
	if !context.Existing && c.Driver != "" {
		p.Warn(path.Child("driver"), "%s is not installed in a cluster that the stack creates, so pods that mount the volume wait until you install it; use filestore or gcsFuse, or install the driver", c.Driver)
	}
	for _, kind := range kinds() {
		if c.Driver != "" && c.Driver == kind.traits().driver {
			p.Invalid(path.Child("driver"), c.Driver, "is the driver of a source with its own rules; write %s", kind.Field())
		}
	}
}

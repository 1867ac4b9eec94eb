package config

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func (v *Volume) setDefaults(s *Stack) {
	if v.Name != "" {
		setDefault(&v.Claim, v.Name+"-claim")
	}
	setDefault(&v.ReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	if len(v.AccessModes) == 0 {
		v.AccessModes = []corev1.PersistentVolumeAccessMode{v.usualAccess()}
	}
	if v.ISCSI != nil {
		setDefault(&v.ISCSI.FSType, "ext4")
	}
	if v.Filestore != nil {
		v.Filestore.setDefaults(s.Cluster)
	}
	if v.GCSFuse != nil {
		v.GCSFuse.setDefaults(s.Cluster)
	}
	if v.PersistentDisk != nil {
		v.PersistentDisk.setDefaults(s)
	}
}

// usualAccess is one node for what is a disk or a directory of a node.
func (v *Volume) usualAccess() corev1.PersistentVolumeAccessMode {
	if v.HostPath != nil || v.Local != nil || v.isBlock() {
		return corev1.ReadWriteOnce
	}
	return corev1.ReadWriteMany
}

// isBlock reports whether a volume is a block device with a file system that
// nothing but a single node can write to.
func (v *Volume) isBlock() bool { return v.ISCSI != nil || v.PersistentDisk != nil }

func (f *Filestore) setDefaults(c Cluster) {
	if f.Create == nil {
		return
	}
	setDefault(&f.Create.Tier, "ZONAL")
	setDefault(&f.Share, "checkpoints")
	switch {
	case filestoreTiers[f.Create.Tier].regional:
		setDefault(&f.Location, c.Region)
	case len(c.Zones) > 0:
		setDefault(&f.Location, c.Zones[0])
	}
}

func (g *GCSFuse) setDefaults(c Cluster) {
	setDefault(&g.Sidecar.CPU, "250m")
	setDefault(&g.Sidecar.Memory, "256Mi")
	setDefault(&g.Sidecar.EphemeralStorage, "5Gi")
	if g.Create == nil {
		return
	}
	// Cloud Storage gives locations back in capitals.
	setDefault(&g.Create.Location, c.Region)
	g.Create.Location = strings.ToUpper(g.Create.Location)
	setDefault(&g.Create.SoftDeleteDays, new(7))
}

func (d *PersistentDisk) setDefaults(s *Stack) {
	setDefault(&d.FSType, "ext4")
	setDefault(&d.Project, s.Project)
	if d.Create == nil {
		return
	}
	setDefault(&d.Create.Type, "pd-balanced")
	if len(d.Zones) == 0 && len(s.Cluster.Zones) > 0 {
		d.Zones = s.Cluster.Zones[:1:1]
	}
}

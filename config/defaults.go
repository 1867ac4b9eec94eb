package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"persia/capacity"
)

// setDefaults fills in what the stack file leaves open. An empty image stays
// empty: it stands for the role's own.
func (s *Stack) setDefaults() {
	s.Cluster.setDefaults()
	for i := range s.NodePools {
		s.NodePools[i].setDefaults(s)
	}
	if s.NVIDIADriver.Installer == InstallerManaged {
		setDefault(&s.NVIDIADriver.Version, "DEFAULT")
	}
	for i := range s.Volumes {
		s.Volumes[i].setDefaults()
	}
	s.NATS.setDefaults()
	for i := range s.Jobs {
		s.Jobs[i].setDefaults()
	}
}

func (c *Cluster) setDefaults() {
	setDefault(&c.ReleaseChannel, "REGULAR")
	setDefault(&c.DeletionProtection, new(true))
	setDefault(&c.Network.Nodes, "10.0.0.0/20")
	setDefault(&c.Network.Pods, "10.16.0.0/14")
	setDefault(&c.Network.Services, "10.1.0.0/20")
	setDefault(&c.Network.ControlPlane, "172.16.0.0/28")
	setDefault(&c.SystemPool.MachineType, "e2-standard-4")
	setDefault(&c.SystemPool.Nodes, max(2, len(c.Zones)))
}

func (p *NodePool) setDefaults(s *Stack) {
	if len(p.Zones) == 0 {
		p.Zones = slices.Clone(s.Cluster.Zones)
	}
	if p.GPU != nil && s.NVIDIADriver.Installer == InstallerUbuntu {
		setDefault(&p.ImageType, imageUbuntu)
	}
	setDefault(&p.ImageType, imageCOS)
	if m, ok := capacity.Lookup(p.MachineType); ok {
		setDefault(&p.Disk.Type, m.BootDisks()[0])
	}
	setDefault(&p.Disk.SizeGB, 100)
}

func (v *Volume) setDefaults() {
	if v.Name != "" {
		setDefault(&v.Claim, v.Name+"-claim")
	}
	if len(v.AccessModes) > 0 {
		return
	}
	v.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	if v.HostPath != nil {
		v.AccessModes[0] = corev1.ReadWriteOnce
	}
}

func (n *NATS) setDefaults() {
	setDefault(&n.Name, "persia-nats-service")
	setDefault(&n.Version, "2.10.22")
	setDefault(&n.MaxPayload, 50<<20)
	setDefault(&n.NodePool, SystemPoolName)
}

func (j *Job) setDefaults() {
	setDefault(&j.EnableMetrics, new(true))
	setDefault(&j.LogLevel, "info")
	setDefault(&j.ImagePullPolicy, corev1.PullAlways)
	setDefault(&j.NNWorker.NprocPerNode, max(1, gpusOf(j.NNWorker.Resources)))
}

// setDefault sets a field that has its zero value.
func setDefault[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}

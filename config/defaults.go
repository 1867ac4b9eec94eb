package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"persia/gcp"
)

// setDefaults fills in what the stack file leaves open. An empty image stays
// empty: it stands for the role's own.
func (s *Stack) setDefaults() {
	if s.Cluster.Existing == nil {
		s.setClusterDefaults()
	}
	for i := range s.NodePools {
		setDefault(&s.NodePools[i].MaxPodsPerNode, 110)
	}
	if s.NVIDIADriver.Installer == InstallerManaged {
		setDefault(&s.NVIDIADriver.Version, "DEFAULT")
	}
	for i := range s.Volumes {
		s.Volumes[i].setDefaults(s)
	}
	s.NATS.Resolve(s.SystemPoolName())
	for i := range s.Jobs {
		s.Jobs[i].setDefaults()
	}
	s.dropOwnNATS()
	if s.PEDL != nil {
		s.PEDL.setDefaults(s)
	}
}

// setClusterDefaults are those of a cluster that is created. The ranges are sized
// from the pools, and so come last.
func (s *Stack) setClusterDefaults() {
	s.Cluster.setDefaults()
	for i := range s.NodePools {
		s.NodePools[i].setDefaults(s)
	}
	s.Cluster.Network.setDefaults(s)
}

func (c *Cluster) setDefaults() {
	setDefault(&c.ReleaseChannel, "REGULAR")
	setDefault(&c.DeletionProtection, new(true))
	setDefault(&c.Maintenance.StartTime, "03:00")
	setDefault(&c.PrivateNodes, new(true))
	setDefault(&c.DataplaneV2, new(true))
	setDefault(&c.DNS, "CLOUD_DNS")
	setDefault(&c.WorkloadIdentity, new(true))
	setDefault(&c.ShieldedNodes, new(true))
	setDefault(&c.BinaryAuthorization, new(true))
	setDefault(&c.SecurityPosture, "BASIC")
	setDefault(&c.SystemPool.MachineType, "e2-standard-4")
	setDefault(&c.SystemPool.Nodes, max(2, len(c.Zones)))
	setDefault(&c.AutoscalingProfile, "OPTIMIZE_UTILIZATION")
	setDefault(&c.ImageStreaming, new(true))
	setDefault(&c.CSIDrivers.PersistentDisk, new(true))
	setDefault(&c.CSIDrivers.Filestore, new(true))
	setDefault(&c.CSIDrivers.GCSFuse, new(true))
	if c.Monitoring.Components == nil {
		c.Monitoring.Components = slices.Clone(gcp.MonitoringComponents)
	}
	setDefault(&c.Monitoring.ManagedPrometheus, new(true))
	setDefault(&c.CostManagement, new(true))
	setDefault(&c.Backup.Agent, new(true))
	if c.Backup.Plan != nil {
		setDefault(&c.Backup.Plan.RetainDays, 7)
	}
}

func (p *NodePool) setDefaults(s *Stack) {
	if len(p.Zones) == 0 {
		p.Zones = slices.Clone(s.Cluster.Zones)
	}
	if p.Autoscaling != nil {
		setDefault(&p.Autoscaling.LocationPolicy, locationPolicy(p))
	}
	if p.GPU != nil && s.NVIDIADriver.Installer == InstallerUbuntu {
		setDefault(&p.ImageType, gcp.ImageUbuntu)
	}
	setDefault(&p.ImageType, gcp.ImageCOS)
	if m, ok := s.machineType(p.MachineType); ok {
		setDefault(&p.Disk.Type, bootDisk(m))
	}
	setDefault(&p.Disk.SizeGB, 100)
	setDefault(&p.GVNIC, new(true))
	setDefault(&p.SecureBoot, new(p.GPU == nil || s.NVIDIADriver.Installer == InstallerManaged))
	setDefault(&p.MaxPodsPerNode, 110)
	p.Upgrade.setDefaults(p.GPU != nil || p.Reservation != "")
}

// bootDisk is the best general choice among the types that a machine takes.
func bootDisk(m gcp.Machine) string {
	if disks := m.BootDisks(); len(disks) > 0 {
		return disks[0]
	}
	return gcp.PDBalanced
}

func locationPolicy(p *NodePool) string {
	if p.GPU != nil || p.Spot || p.QueuedProvisioning {
		return "ANY"
	}
	return "BALANCED"
}

// setDefaults leaves out what belongs to the other strategy.
func (u *Upgrade) setDefaults(scarce bool) {
	setDefault(&u.Strategy, "SURGE")
	switch u.Strategy {
	case "SURGE":
		surge := 1
		if scarce {
			surge = 0
		}
		setDefault(&u.MaxSurge, &surge)
		unavailable := 0
		if *u.MaxSurge == 0 {
			unavailable = 1
		}
		setDefault(&u.MaxUnavailable, &unavailable)
	case "BLUE_GREEN":
		setDefault(&u.BatchNodes, 1)
		setDefault(&u.SoakSeconds, 3600)
	}
}

func (j *Job) setDefaults() {
	setDefault(&j.RunID, "1")
	setDefault(&j.Engine, EngineStatefulSet)
	setDefault(&j.EnableMetrics, new(true))
	setDefault(&j.LogLevel, "info")
	setDefault(&j.RestartPolicy, corev1.RestartPolicyNever)
	setDefault(&j.ImagePullPolicy, corev1.PullAlways)
	if j.Script != nil {
		setDefault(&j.Script.Python, "/opt/conda/bin/python3")
		setDefault(&j.Script.Port, 23333)
	}
	setDefault(&j.NNWorker.NprocPerNode, max(1, gpusOf(j.NNWorker.Resources)))
	for _, r := range j.roles() {
		setDefault(&r.NodePool, j.NodePool)
		setDefault(&r.TerminationGracePeriodSeconds, 60)
	}
}

// setDefault sets a field that has its zero value.
func setDefault[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}

package config

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/config/decode"
	"persia/config/volume"
	"persia/gcp"
)

// PEDLAgentTaint keeps pods off nodes that host agents, which presume that they have
// the whole node. It is also a label, by which agents find their nodes.
var PEDLAgentTaint = Taint{Key: "determined.ai/pedl-agent", Value: "present", Effect: corev1.TaintEffectNoSchedule}

const (
	// PEDLNamespace is the namespace of the master and of its database.
	PEDLNamespace = "pedl"
	// PEDLVolume is the name of the database's volume, and of its claim.
	PEDLVolume = "pedl-postgresql"
)

// dropEmptyPEDL takes {} for no PEDL: it is what Pulumi gives to stacks that say
// nothing of it.
func (s *Stack) dropEmptyPEDL() {
	if s.PEDL != nil && reflect.ValueOf(*s.PEDL).IsZero() {
		s.PEDL = nil
	}
}

// The amounts that PEDL's parts ask for, and may use.
var (
	masterResources     = amountsOf("8", "16Gi", "4", "8Gi")
	agentResources      = amountsOf("1", "2Gi", "100m", "256Mi")
	postgreSQLResources = amountsOf("8", "32G", "4", "16G")
)

func amountsOf(limitCPU, limitMemory, requestCPU, requestMemory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{"cpu": resource.MustParse(limitCPU), "memory": resource.MustParse(limitMemory)},
		Requests: corev1.ResourceList{"cpu": resource.MustParse(requestCPU), "memory": resource.MustParse(requestMemory)},
	}
}

func (p *PEDL) setDefaults(s *Stack) {
	setDefault(&p.MasterImage, "determinedai/pedl-master")
	setDefault(&p.AgentImage, "determinedai/pedl-agent")
	setDefault(&p.ImagePullPolicy, corev1.PullIfNotPresent)
	setDefault(&p.NodePool, s.SystemPoolName())
	setDefault(&p.TrialRunner.Network, "default")
	setDefault(&p.Registry.Server, "https://index.docker.io/v1/")
	setDefault(&p.Registry.User, "determinedaicustomer")
	setDefault(&p.Registry.Email, "hello@determined.ai")
	setDefault(&p.Service.Type, corev1.ServiceTypeClusterIP)
	setDefault(&p.Service.Port, 8080)
	defaultResources(&p.Resources, masterResources)
	defaultResources(&p.Agent.Resources, agentResources)
	if p.Agent.Tolerations == nil {
		p.Agent.Tolerations = []corev1.Toleration{{Key: gcp.TaintGPU, Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	}
	p.Postgres.setDefaults(s, p.NodePool)
	s.hostAgents(p.Agent.NodePools)
}

// hostAgents gives pools the label that agents look for, and the taint that keeps
// others off. Pools that exist are not changed.
func (s *Stack) hostAgents(pools []string) {
	if s.Cluster.Existing != nil {
		return
	}
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		if !slices.Contains(pools, pool.Name) {
			continue
		}
		if pool.Labels == nil {
			pool.Labels = map[string]string{}
		}
		if _, written := pool.Labels[PEDLAgentTaint.Key]; !written {
			pool.Labels[PEDLAgentTaint.Key] = PEDLAgentTaint.Value
		}
		if !slices.Contains(pool.Taints, PEDLAgentTaint) {
			pool.Taints = append(pool.Taints, PEDLAgentTaint)
		}
	}
}

// defaultResources completes amounts one by one. A default never contradicts what is
// written.
func defaultResources(r *corev1.ResourceRequirements, defaults corev1.ResourceRequirements) {
	r.Limits, r.Requests = orEmpty(r.Limits), orEmpty(r.Requests)
	for name, limit := range defaults.Limits {
		request, requested := r.Requests[name]
		if _, written := r.Limits[name]; !written {
			r.Limits[name] = limit
			if requested && request.Cmp(limit) > 0 {
				r.Limits[name] = request
			}
		}
		limit = r.Limits[name]
		// What is no amount is reported for that.
		if !requested && limit.Sign() > 0 {
			r.Requests[name] = defaults.Requests[name]
			if limit.Cmp(defaults.Requests[name]) < 0 {
				r.Requests[name] = limit
			}
		}
	}
}

func orEmpty(list corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return corev1.ResourceList{}
	}
	return list
}

// setDefaults leaves out what an external database has not.
func (p *PEDLPostgreSQL) setDefaults(s *Stack, nodePool string) {
	if p.External != nil {
		setDefault(&p.External.Port, 5432)
		setDefault(&p.External.User, "postgres")
		setDefault(&p.External.Database, "pedl")
		return
	}
	setDefault(&p.Image.Registry, "docker.io")
	setDefault(&p.Image.Repository, "bitnami/postgresql")
	setDefault(&p.Image.Tag, "10.8.0")
	setDefault(&p.Image.PullPolicy, corev1.PullIfNotPresent)
	setDefault(&p.Database, "pedl")
	setDefault(&p.Service.Port, 5432)
	defaultResources(&p.Resources, postgreSQLResources)
	if p.ExtendedConfig == nil {
		p.ExtendedConfig = map[string]PostgreSQLValue{}
	}
	for name, value := range map[string]PostgreSQLValue{"maxConnections": "2000", "sharedBuffers": "512MB"} {
		if _, written := p.ExtendedConfig[name]; !written {
			p.ExtendedConfig[name] = value
		}
	}
	p.Persistence.setDefaults(s, nodePool)
}

func (p *PostgreSQLPersistence) setDefaults(s *Stack, nodePool string) {
	setDefault(&p.Enabled, new(true))
	setDefault(&p.AccessMode, corev1.ReadWriteOnce)
	setDefault(&p.Size, "100Gi")
	setDefault(&p.MountPath, "/bitnami/postgresql")
	if !*p.Enabled || p.ExistingClaim != "" || p.StorageClass != "" {
		return
	}
	if p.Source() == nil && s.Cluster.Existing == nil {
		p.PersistentDisk = &volume.PersistentDisk{Disk: s.Cluster.Name + "-" + PEDLVolume, Create: &volume.CreateDisk{}}
		decode.Defaults(p.PersistentDisk)
		decode.Defaults(p.PersistentDisk.Create)
	}
	if disk := p.PersistentDisk; disk != nil && disk.Create != nil && len(disk.Zones) == 0 {
		// A pod is where its disk is.
		if pool, ok := s.pool(nodePool); ok && len(pool.Zones) > 0 {
			disk.Zones = pool.Zones[:1:1]
		}
	}
	v := p.volume()
	v.Resolve(s.volumePlace())
}

// volume is the database's volume as one of the stack's.
func (p *PostgreSQLPersistence) volume() volume.Volume {
	return volume.Volume{
		Name:          PEDLVolume,
		Claim:         PEDLVolume,
		Size:          p.Size,
		AccessModes:   []corev1.PersistentVolumeAccessMode{p.AccessMode},
		ReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		Sources:       p.Sources,
	}
}

// PEDLDatabase is the volume of PEDL's database, if it is one of the stack's.
func (s *Stack) PEDLDatabase() (volume.Volume, bool) {
	if s.PEDL == nil || s.PEDL.Postgres.External != nil {
		return volume.Volume{}, false
	}
	p := &s.PEDL.Postgres.Persistence
	if !*p.Enabled || p.Source() == nil {
		return volume.Volume{}, false
	}
	return p.volume(), true
}

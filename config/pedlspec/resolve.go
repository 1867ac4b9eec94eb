package pedlspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/decode"
	"persia/config/volumespec"
	"persia/gcp"
)

// Context is what PEDL needs to know of the rest of the stack file.
type Context struct {
	// Cluster is the name of the cluster.
	Cluster string
	// SystemPool is the pool of everything that is not training.
	SystemPool string
	// Pool finds a node pool by its name.
	Pool func(name string) (volumespec.Pool, bool)
	// Storage is what volumes need to know.
	Storage volumespec.Context
	// Volumes are those of the jobs, and VolumesPath is where they are declared.
	Volumes     []volumespec.Volume
	VolumesPath *field.Path
}

// Resolve fills in what depends on other fields and on the rest of the stack file.
func (f *Platform) Resolve(context Context) {
	if f.NodePool == "" {
		f.NodePool = context.SystemPool
	}
	defaultResources(&f.Resources, masterResources)
	defaultResources(&f.Agent.Resources, agentResources)
	if f.Agent.Tolerations == nil {
		f.Agent.Tolerations = []corev1.Toleration{{Key: gcp.TaintGPU, Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	}
	f.Postgres.resolve(f.NodePool, context)
}

// resolve leaves a database that is not the stack's as it is.
func (d *PostgreSQL) resolve(nodePool string, context Context) {
	if d.External != nil {
		return
	}
	defaultResources(&d.Resources, databaseResources)
	if d.ExtendedConfig == nil {
		d.ExtendedConfig = map[string]SettingValue{}
	}
	for name, value := range map[string]SettingValue{"maxConnections": "2000", "sharedBuffers": "512MB"} {
		if _, written := d.ExtendedConfig[name]; !written {
			d.ExtendedConfig[name] = value
		}
	}
	d.Persistence.resolve(nodePool, context)
}

func (d *Persistence) resolve(nodePool string, context Context) {
	if !d.Enabled || d.ExistingClaim != "" || d.StorageClass != "" {
		return
	}
	if d.Source() == nil && !context.Storage.Existing {
		d.PersistentDisk = &volumespec.PersistentDisk{Disk: context.Cluster + "-" + VolumeName, Create: &volumespec.CreateDisk{}}
		decode.Defaults(d.PersistentDisk)
		decode.Defaults(d.PersistentDisk.Create)
	}
	if disk := d.PersistentDisk; disk != nil && disk.Create != nil && len(disk.Zones) == 0 {
		// A pod is where its disk is.
		if pool, ok := context.Pool(nodePool); ok && len(pool.Zones) > 0 {
			disk.Zones = pool.Zones[:1:1]
		}
	}
	v := d.volume()
	v.Resolve(context.Storage)
}

// The amounts that PEDL's parts ask for, and may use.
var (
	masterResources   = amountsOf("8", "16Gi", "4", "8Gi")
	agentResources    = amountsOf("1", "2Gi", "100m", "256Mi")
	databaseResources = amountsOf("8", "32G", "4", "16G")
)

func amountsOf(limitCPU, limitMemory, requestCPU, requestMemory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{"cpu": resource.MustParse(limitCPU), "memory": resource.MustParse(limitMemory)},
		Requests: corev1.ResourceList{"cpu": resource.MustParse(requestCPU), "memory": resource.MustParse(requestMemory)},
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

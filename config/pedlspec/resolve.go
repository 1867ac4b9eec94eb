package pedlspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/decode"
	"persia/config/volumespec"
	"persia/gcp"
)

// Context is the part of the stack file that PEDL depends on.
type Context struct {
	// Cluster and SystemPool are names.
	Cluster, SystemPool string
	// Pool returns the node pool with a name.
	Pool func(name string) (volumespec.Pool, bool)
	// Storage is the context of volumes.
	Storage volumespec.Context
	// Volumes are the volumes of jobs, and VolumesPath is the path of their list.
	Volumes     []volumespec.Volume
	VolumesPath *field.Path
}

// Resolve fills in defaults that depend on other fields and on the rest of the stack file.
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

// resolve leaves an external database as it is.
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
		// The pod must run in the zone of its disk.
		if pool, ok := context.Pool(nodePool); ok && len(pool.Zones) > 0 {
			disk.Zones = pool.Zones[:1:1]
		}
	}
	v := d.volume()
	v.Resolve(context.Storage)
}

// The default resources of PEDL's pods.
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

// defaultResources fills in each missing amount. A default request never exceeds a limit that
// the user wrote, and a default limit is never below a request.
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
		// Check reports limits that are not positive.
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

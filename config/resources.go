package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/config/pod"
	"persia/config/poolspec"
	"persia/gcp"
)

// assignment checks that what is to run fits a node of the pool that it is
// assigned to, which it returns. The path is that of the object with nodePool
// and resources.
func (v *validator) assignment(path *field.Path, who, poolName string, r corev1.ResourceRequirements, allowed []string) (poolspec.Pool, bool) {
	at, before := path.Child("resources"), v.Count()
	pod.Resources(v.Problems, at, who, r)
	sound := v.Count() == before
	pool, ok := v.assignedPool(path.Child("nodePool"), poolName, allowed)
	if ok {
		v.fits(at, who, r, pool)
	}
	if ok && sound {
		v.onNodes(at, who, r, pool)
	}
	return pool, ok
}

// nodeResources are those that the nodes of a pool have. Of an existing pool's others,
// nothing is known.
var nodeResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, pod.GPU}

// onNodes checks that the nodes of a pool have what is asked for: a pod that asks for
// something else waits forever.
func (v *validator) onNodes(path *field.Path, who string, r corev1.ResourceRequirements, pool poolspec.Pool) {
	if v.stack.Cluster.Existing != nil {
		return
	}
	for _, list := range []struct {
		field   string
		amounts corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.amounts)) {
			q := list.amounts[name]
			switch at := path.Child(list.field).Key(string(name)); {
			case slices.Contains(nodeResources, name):
			case strings.HasPrefix(string(name), "nvidia.com/mig-"):
				v.Invalid(at, q.String(), "is not a resource of the nodes of pool %q, because GKE counts GPU partitions as %s too; %s must request that", pool.Name, pod.GPU, who)
			default:
				v.Invalid(at, q.String(), "is not a resource of any node of pool %q, so the pods of %s would stay pending; remove it", pool.Name, who)
			}
		}
	}
}

func (v *validator) assignedPool(path *field.Path, name string, allowed []string) (poolspec.Pool, bool) {
	pool, ok := v.stack.Pool(name)
	switch {
	case ok && slices.Contains(allowed, name) && pool.QueuedProvisioning:
		v.Invalid(path, name, "has queuedProvisioning, which creates nodes only for pods with a ProvisioningRequest, and these pods have none; choose another pool, or remove queuedProvisioning")
	case ok && slices.Contains(allowed, name):
		return pool, true
	case !v.Decoded(field.NewPath(nodePoolsKey)):
	case len(allowed) == 0:
		v.Invalid(path, name, "must be a node pool, but the stack has none; add one in %s", nodePoolsKey)
	case name == "":
		v.Required(path, "write one of the stack's node pools: %s", check.Or(allowed))
	default:
		v.Invalid(path, name, "must be one of the stack's node pools: %s", check.Or(allowed))
	}
	return poolspec.Pool{}, false
}

// fits checks that one replica finds room on an empty node.
func (v *validator) fits(path *field.Path, who string, r corev1.ResourceRequirements, pool poolspec.Pool) {
	if _, ok := pool.Machine(v.stack.MachineTypes); !ok {
		return
	}
	room := planner{v.stack}.nodeRoom(pool)
	fit := func(name corev1.ResourceName, left *resource.Quantity, text string) {
		if q, at, ok := pod.Asked(path, r, name); ok && q.Cmp(*left) > 0 {
			v.Invalid(at, q.String(), "%s does not fit on a node of pool %q: of %s, GKE and the pods on every node leave %s; request less%s",
				who, pool.Name, pool.MachineType, text, v.orMachines(r, pool))
		}
	}
	fit(corev1.ResourceCPU, resource.NewMilliQuantity(room.MilliCPU, resource.DecimalSI),
		fmt.Sprintf("%.2f vCPU", float64(room.MilliCPU/10)/100))
	fit(corev1.ResourceMemory, resource.NewQuantity(room.MemoryBytes, resource.BinarySI),
		fmt.Sprintf("%.1fGi", float64(room.MemoryBytes*10/capacity.GiB)/10))
	fit(corev1.ResourceEphemeralStorage, resource.NewQuantity(room.EphemeralBytes, resource.BinarySI),
		fmt.Sprintf("%dGi of ephemeral storage", room.EphemeralBytes/capacity.GiB))
}

// orMachines names machine types that a replica fits.
func (v *validator) orMachines(r corev1.ResourceRequirements, pool poolspec.Pool) string {
	gpuType := ""
	if pool.GPU != nil {
		gpuType = pool.GPU.Type
	}
	types := capacity.MachinesFor(pod.Requests(r), gpuType, func(m gcp.Machine) capacity.Resources {
		other := pool
		other.MachineType, other.GPU = m.Type, nil
		if m.GPUs > 0 {
			other.GPU = &poolspec.GPU{Type: m.GPUType, Count: m.GPUs}
		}
		return planner{v.stack}.nodeRoom(other)
	})
	if len(types) == 0 {
		return ""
	}
	return ", or choose a machine type that holds it, like " + check.Or(types)
}

// gpusFit checks that a node has as many GPUs, or places on them, as one replica
// asks for.
func (v *validator) gpusFit(path *field.Path, who string, r corev1.ResourceRequirements, pool poolspec.Pool) {
	m, ok := pool.Machine(v.stack.MachineTypes)
	q, at, asks := pod.Asked(path, r, pod.GPU)
	if !ok || !asks {
		return
	}
	has, shared := int64(m.GPUs), false
	if pool.GPU != nil {
		has, shared = has*pool.GPU.PlacesEach(), pool.GPU.Sharing != nil
	}
	switch {
	case has == 0:
		v.Invalid(at, q.String(), "%s requests %s %s, but pool %q has none; assign it to a GPU pool, or remove the GPUs", who, &q, pod.GPU, pool.Name)
	case shared && q.CmpInt64(1) > 0:
		v.Invalid(at, q.String(), "%s requests %s %s, but the GPUs of pool %q are shared, and a container can have only one; request 1, or remove sharing from the pool", who, &q, pod.GPU, pool.Name)
	case q.CmpInt64(has) > 0:
		v.Invalid(at, q.String(), "%s requests %s %s, but a node of pool %q has %d; request at most that, or choose a machine type other than %s", who, &q, pod.GPU, pool.Name, has, m.Type)
	}
}

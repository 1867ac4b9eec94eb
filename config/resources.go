package config

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/pod"
	"persia/gcp"
)

// assignment checks that what is to run fits a node of the pool that it is
// assigned to, which it returns. The path is that of the object with nodePool
// and resources.
func (v *validator) assignment(path *field.Path, who, poolName string, r corev1.ResourceRequirements, allowed []string) (NodePool, bool) {
	at := path.Child("resources")
	v.resources(at, who, r)
	pool, ok := v.assignedPool(path.Child("nodePool"), poolName, allowed)
	if ok {
		v.fits(at, who, r, pool)
	}
	return pool, ok
}

func (v *validator) assignedPool(path *field.Path, name string, allowed []string) (NodePool, bool) {
	pool, ok := v.stack.pool(name)
	switch {
	case ok && slices.Contains(allowed, name) && pool.QueuedProvisioning:
		v.invalid(path, name, "has queuedProvisioning, and makes nodes only for pods with a ProvisioningRequest, which these have not; choose another pool, or remove queuedProvisioning")
	case ok && slices.Contains(allowed, name):
		return pool, true
	case !v.decoded(nodePoolsKey):
	case len(allowed) == 0:
		v.invalid(path, name, "must be a node pool, and the stack has none; write one in %s", nodePoolsKey)
	case name == "":
		v.required(path, "write one of the stack's node pools: %s", or(allowed))
	default:
		v.invalid(path, name, "must be one of the stack's node pools: %s", or(allowed))
	}
	return NodePool{}, false
}

// fits checks that one replica finds room on an empty node.
func (v *validator) fits(path *field.Path, who string, r corev1.ResourceRequirements, pool NodePool) {
	if _, ok := pool.Machine(v.stack.MachineTypes); !ok {
		return
	}
	room := v.stack.nodeRoom(pool)
	check := func(name corev1.ResourceName, left *resource.Quantity, text string) {
		if q, at, ok := pod.Asked(path, r, name); ok && q.Cmp(*left) > 0 {
			v.invalid(at, q.String(), "%s fits no node of pool %q: of %s, GKE and the pods of every node leave %s; ask for less%s",
				who, pool.Name, pool.MachineType, text, v.orMachines(r, pool))
		}
	}
	check(corev1.ResourceCPU, resource.NewMilliQuantity(room.MilliCPU, resource.DecimalSI),
		fmt.Sprintf("%.2f vCPU", float64(room.MilliCPU/10)/100))
	check(corev1.ResourceMemory, resource.NewQuantity(room.MemoryBytes, resource.BinarySI),
		fmt.Sprintf("%.1fGi", float64(room.MemoryBytes*10/capacity.GiB)/10))
	check(corev1.ResourceEphemeralStorage, resource.NewQuantity(room.EphemeralBytes, resource.BinarySI),
		fmt.Sprintf("%dGi of ephemeral storage", room.EphemeralBytes/capacity.GiB))
}

// orMachines names machine types that a replica fits.
func (v *validator) orMachines(r corev1.ResourceRequirements, pool NodePool) string {
	gpuType := ""
	if pool.GPU != nil {
		gpuType = pool.GPU.Type
	}
	types := capacity.MachinesFor(requests(r), gpuType, func(m gcp.Machine) capacity.Resources {
		other := pool
		other.MachineType, other.GPU = m.Type, nil
		if m.GPUs > 0 {
			other.GPU = &GPU{Type: m.GPUType, Count: m.GPUs}
		}
		return v.stack.nodeRoom(other)
	})
	if len(types) == 0 {
		return ""
	}
	return ", or choose a machine type that holds it, like " + or(types)
}

// gpusFit checks that a node has as many GPUs, or places on them, as one replica
// asks for.
func (v *validator) gpusFit(path *field.Path, who string, r corev1.ResourceRequirements, pool NodePool) {
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
		v.invalid(at, q.String(), "%s asks for %s %s, pool %q has none; assign it to a GPU pool, or remove the GPUs", who, &q, pod.GPU, pool.Name)
	case shared && q.CmpInt64(1) > 0:
		v.invalid(at, q.String(), "%s asks for %s %s, and those of pool %q are shared, of which a container gets one; ask for 1, or remove sharing from the pool", who, &q, pod.GPU, pool.Name)
	case q.CmpInt64(has) > 0:
		v.invalid(at, q.String(), "%s asks for %s %s, a node of pool %q has %d; ask for at most that, or choose another machine type than %s", who, &q, pod.GPU, pool.Name, has, m.Type)
	}
}

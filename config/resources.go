package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"persia/capacity"
	"persia/gcp"
)

// gpuResource is the resource that the device plugin of GKE counts GPUs by.
const gpuResource corev1.ResourceName = gcp.GPUResource

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

// resources checks what one container asks for, wherever it is to run.
func (v *validator) resources(path *field.Path, who string, r corev1.ResourceRequirements) {
	v.amounts(path.Child("limits"), r.Limits)
	v.amounts(path.Child("requests"), r.Requests)
	v.requestsWithinLimits(path, r)
	if len(r.Claims) > 0 {
		v.forbidden(path.Child("claims"), "dynamic resource allocation is not set up; write limits and requests")
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, _, ok := asked(path, r, name); !ok {
			v.required(path.Child("limits").Key(string(name)), "write how much of it %s needs", who)
		}
	}
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

func (v *validator) amounts(path *field.Path, list corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at, q := path.Key(string(name)), list[name]
		v.resourceName(at, name)
		switch {
		case q.Sign() <= 0:
			v.invalid(at, q.String(), "must be more than 0; remove it if none is needed")
		case name == corev1.ResourceMemory && q.Cmp(resource.MustParse("1Mi")) < 0:
			v.invalid(at, q.String(), "is less than 1Mi; memory is in bytes, so write a unit, like 600Gi")
		case isExtended(name) && !isWhole(q):
			v.invalid(at, q.String(), "must be a whole number")
		}
	}
}

// resourceName refuses what Kubernetes counts nothing by.
func (v *validator) resourceName(path *field.Path, name corev1.ResourceName) {
	native := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	if slices.Contains(native, name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		return
	}
	if !isExtended(name) {
		v.invalid(path, name, "must be %s, or an extended resource with a domain, like %s", or(texts(native)), gpuResource)
		return
	}
	for _, message := range validation.IsQualifiedName(string(name)) {
		v.invalid(path, name, "%s", message)
	}
	if near := nearest(string(name), []string{string(gpuResource)}); len(near) > 0 && name != gpuResource {
		v.invalid(path, name, "is no resource of any node; did you mean %s?", gpuResource)
	}
}

// isExtended reports whether a resource is counted by a device plugin. These
// are not overcommitted, and come whole.
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/")
}

func isWhole(q resource.Quantity) bool {
	n, ok := q.AsInt64()
	return ok && q.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) == 0
}

func (v *validator) requestsWithinLimits(path *field.Path, r corev1.ResourceRequirements) {
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		at, request := path.Child("requests").Key(string(name)), r.Requests[name]
		limit, limited := r.Limits[name]
		switch {
		case isExtended(name) && (!limited || request.Cmp(limit) != 0):
			v.invalid(at, request.String(), "must equal the limit, as %s is not shared; write it in limits only", name)
		case limited && request.Cmp(limit) > 0:
			v.invalid(at, request.String(), "must be at most the limit, %s", limit.String())
		}
	}
}

// asked is what the scheduler counts: the request, or else the limit. It tells
// also where that is written.
func asked(path *field.Path, r corev1.ResourceRequirements, name corev1.ResourceName) (resource.Quantity, *field.Path, bool) {
	if q, ok := r.Requests[name]; ok {
		return q, path.Child("requests").Key(string(name)), true
	}
	q, ok := r.Limits[name]
	return q, path.Child("limits").Key(string(name)), ok
}

// fits checks that one replica finds room on an empty node.
func (v *validator) fits(path *field.Path, who string, r corev1.ResourceRequirements, pool NodePool) {
	if _, ok := v.stack.machine(pool); !ok {
		return
	}
	room := v.stack.nodeRoom(pool)
	check := func(name corev1.ResourceName, left *resource.Quantity, text string) {
		if q, at, ok := asked(path, r, name); ok && q.Cmp(*left) > 0 {
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
	m, ok := v.stack.machine(pool)
	q, at, asks := asked(path, r, gpuResource)
	if !ok || !asks {
		return
	}
	has, shared := int64(m.GPUs), false
	if pool.GPU != nil {
		has, shared = has*pool.GPU.placesEach(), pool.GPU.Sharing != nil
	}
	switch {
	case has == 0:
		v.invalid(at, q.String(), "%s asks for %s %s, pool %q has none; assign it to a GPU pool, or remove the GPUs", who, &q, gpuResource, pool.Name)
	case shared && q.CmpInt64(1) > 0:
		v.invalid(at, q.String(), "%s asks for %s %s, and those of pool %q are shared, of which a container gets one; ask for 1, or remove sharing from the pool", who, &q, gpuResource, pool.Name)
	case q.CmpInt64(has) > 0:
		v.invalid(at, q.String(), "%s asks for %s %s, a node of pool %q has %d; ask for at most that, or choose another machine type than %s", who, &q, gpuResource, pool.Name, has, m.Type)
	}
}

// noGPUs refuses GPUs for what cannot use them.
func (v *validator) noGPUs(path *field.Path, who string, r corev1.ResourceRequirements) {
	if q, at, ok := asked(path, r, gpuResource); ok {
		v.invalid(at, q.String(), "%s uses no GPUs; remove them", who)
	}
}

// gpusOf is the number of GPUs that are asked for, 0 if that is no sensible
// number.
func gpusOf(r corev1.ResourceRequirements) int {
	q, _, _ := asked(nil, r, gpuResource)
	n, ok := q.AsInt64()
	if !ok || n < 0 || n > 1<<10 {
		return 0
	}
	return int(n)
}

// Package pod checks the parts of pods that several topics of a stack file share: resources,
// environment variables, tolerations, images.
package pod

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/gcp"
)

// GPU is the extended resource of GKE's GPU device plugin.
const GPU corev1.ResourceName = gcp.GPUResource

// leastMilliCPU and leastMemory are less than any container of a stack needs.
const (
	leastMilliCPU = 50
	leastMemory   = 48 * capacity.MiB
)

// Resources checks the requests and limits of a container on any node. Who completes the
// sentence "write how much … needs".
func Resources(p *check.Problems, path *field.Path, who string, r corev1.ResourceRequirements) {
	amounts(p, path.Child("limits"), r.Limits)
	amounts(p, path.Child("requests"), r.Requests)
	requestsWithinLimits(p, path, r)
	if cpu, limited := r.Limits[corev1.ResourceCPU]; limited && tiny(cpu) {
		p.Warn(path.Child("limits").Key("cpu"), "%s limits %s to a few thousandths of a CPU, on which it hardly moves; did you mean %d?", cpu.String(), who, cpu.MilliValue())
	} else if cpu, asked := r.Requests[corev1.ResourceCPU]; asked && !limited && tiny(cpu) {
		p.Warn(path.Child("requests").Key("cpu"), "%s reserves a few thousandths of a CPU for %s, on which it hardly moves when the node is busy; did you mean %d?", cpu.String(), who, cpu.MilliValue())
	}
	if memory, at, ok := Asked(path, r, corev1.ResourceMemory); ok && memory.CmpInt64(1<<20) >= 0 && memory.CmpInt64(leastMemory) < 0 {
		p.Warn(at, "%s is less than %s can start with; did you mean Gi?", memory.String(), who)
	}
	if len(r.Claims) > 0 {
		p.Forbidden(path.Child("claims"), "dynamic resource allocation is not set up; write limits and requests")
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, _, ok := Asked(path, r, name); !ok {
			p.Required(path.Child("limits").Key(string(name)), "write how much %s needs", who)
		}
	}
}

// tiny reports whether an amount of CPU is positive and less than any container needs.
func tiny(cpu resource.Quantity) bool { return cpu.Sign() > 0 && cpu.MilliValue() < leastMilliCPU }

// NoGPUs refuses GPUs for a container that cannot use them.
func NoGPUs(p *check.Problems, path *field.Path, who string, r corev1.ResourceRequirements) {
	if q, at, ok := Asked(path, r, GPU); ok {
		p.Invalid(at, q.String(), "%s uses no GPUs; remove them", who)
	}
}

// Asked returns the amount that the scheduler counts: the request, or the limit if there is none.
// It also returns the path of the amount, and whether there is one.
func Asked(path *field.Path, r corev1.ResourceRequirements, name corev1.ResourceName) (resource.Quantity, *field.Path, bool) {
	if q, ok := r.Requests[name]; ok {
		return q, path.Child("requests").Key(string(name)), true
	}
	q, ok := r.Limits[name]
	return q, path.Child("limits").Key(string(name)), ok
}

// Limit returns the amount that the container cannot exceed: the limit, or the request if there is none. It
// also returns the path of the amount, and whether there is one.
func Limit(path *field.Path, r corev1.ResourceRequirements, name corev1.ResourceName) (resource.Quantity, *field.Path, bool) {
	if q, ok := r.Limits[name]; ok {
		return q, path.Child("limits").Key(string(name)), true
	}
	q, ok := r.Requests[name]
	return q, path.Child("requests").Key(string(name)), ok
}

// GPUs returns the number of GPUs that a container requests, or 0 if it is invalid.
func GPUs(r corev1.ResourceRequirements) int {
	q, _, _ := Asked(nil, r, GPU)
	n, ok := q.AsInt64()
	if !ok || n < 0 || n > 1<<10 {
		return 0
	}
	return int(n)
}

// Requests returns the resource requests of a pod with one container.
func Requests(r corev1.ResourceRequirements) capacity.Resources {
	amount := func(name corev1.ResourceName) resource.Quantity {
		q, _, _ := Asked(nil, r, name)
		return q
	}
	cpu, memory, disk, gpus := amount(corev1.ResourceCPU), amount(corev1.ResourceMemory),
		amount(corev1.ResourceEphemeralStorage), amount(GPU)
	return capacity.Resources{
		MilliCPU:       cpu.MilliValue(),
		MemoryBytes:    memory.Value(),
		EphemeralBytes: disk.Value(),
		GPUs:           gpus.Value(),
		Pods:           1,
	}
}

func amounts(p *check.Problems, path *field.Path, list corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at, q := path.Key(string(name)), list[name]
		resourceName(p, at, name)
		switch {
		case q.Sign() <= 0:
			p.Invalid(at, q.String(), "must be more than 0; remove it if you need none")
		case q.CmpInt64(math.MaxInt64) >= 0 || name == corev1.ResourceCPU && q.CmpInt64(mostCPUs) > 0:
			p.Invalid(at, q.String(), "is more than any machine has; write less")
		case bytes[name] && q.Cmp(resource.MustParse("1Mi")) < 0:
			p.Invalid(at, q.String(), "is less than 1Mi; %s without a unit is in bytes, so add one, like 600Gi", name)
		case isExtended(name) && !isWhole(q):
			p.Invalid(at, q.String(), "must be a whole number")
		case isHugePages(name):
			hugePages(p, at, name, q)
		}
	}
}

// bytes are the resources measured in bytes.
var bytes = map[corev1.ResourceName]bool{corev1.ResourceMemory: true, corev1.ResourceEphemeralStorage: true}

// mostCPUs is more than any machine has, and small enough for an int64 of thousandths.
const mostCPUs = 1 << 20

// resourceName checks the name of a resource.
func resourceName(p *check.Problems, path *field.Path, name corev1.ResourceName) {
	native := []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourceEphemeralStorage)}
	if slices.Contains(native, string(name)) || isHugePages(name) {
		return
	}
	if !isExtended(name) {
		p.Invalid(path, name, "must be %s, or an extended resource with a domain, like %s", check.Or(native), GPU)
		return
	}
	p.InvalidFor(path, name, validation.IsQualifiedName(string(name)))
	if near := check.Nearest(string(name), []string{string(GPU)}); len(near) > 0 && name != GPU {
		p.Invalid(path, name, "is not a resource of any node; did you mean %s?", GPU)
	}
}

// isExtended reports whether a device plugin counts a resource. Kubernetes does not overcommit
// these, and counts whole numbers of them.
func isExtended(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// hugePages checks an amount of huge pages. The name of the resource contains the page size.
func hugePages(p *check.Problems, path *field.Path, name corev1.ResourceName, q resource.Quantity) {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	switch {
	case err != nil || size.Sign() <= 0 || !isWhole(size):
		p.Invalid(path, name, "does not name a page size; write hugepages-2Mi or hugepages-1Gi")
	case q.Value()%size.Value() != 0:
		p.Invalid(path, q.String(), "must be a multiple of the page size, %s", size.String())
	}
}

func isWhole(q resource.Quantity) bool {
	n, ok := q.AsInt64()
	return ok && q.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) == 0
}

func requestsWithinLimits(p *check.Problems, path *field.Path, r corev1.ResourceRequirements) {
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		at, request := path.Child("requests").Key(string(name)), r.Requests[name]
		limit, limited := r.Limits[name]
		switch {
		case (isExtended(name) || isHugePages(name)) && (!limited || request.Cmp(limit) != 0):
			p.Invalid(at, request.String(), "must equal the limit, because %s cannot be overcommitted; write it only in limits", name)
		case limited && request.Cmp(limit) > 0:
			p.Invalid(at, request.String(), "must be at most the limit, %s", limit.String())
		}
	}
}

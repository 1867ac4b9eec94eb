package config

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// ResourceGPU is the extended resource of GKE's GPU device plugin.
const ResourceGPU corev1.ResourceName = gcp.GPUResource

// checkResources checks the requests and limits of a container on any node. Who completes the
// sentence "write how much … needs".
func checkResources(p *input.Problems, path *field.Path, who string, r corev1.ResourceRequirements) {
	checkAmounts(p, path.Child("limits"), r.Limits)
	checkAmounts(p, path.Child("requests"), r.Requests)
	checkRequestsWithinLimits(p, path, r)
	if len(r.Claims) > 0 {
		p.Forbidden(path.Child("claims"), "dynamic resource allocation is not set up; write limits and requests")
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, ok := asked(r, name); !ok {
			p.Required(path.Child("limits").Key(string(name)), "write how much %s needs", who)
		}
	}
}

// asked returns the amount that the scheduler counts: the request, or the limit if there is none. It also returns whether
// there is one.
func asked(r corev1.ResourceRequirements, name corev1.ResourceName) (resource.Quantity, bool) {
	if q, ok := r.Requests[name]; ok {
		return q, true
	}
	q, ok := r.Limits[name]
	return q, ok
}

// GPUs returns the number of GPUs that a container requests, or 0 if it is invalid.
func GPUs(r corev1.ResourceRequirements) int {
	q, _ := asked(r, ResourceGPU)
	n, ok := q.AsInt64()
	if !ok || n < 0 || n > 1<<10 {
		return 0
	}
	return int(n)
}

// PodRequests returns the resource requests of a pod with one container.
func PodRequests(r corev1.ResourceRequirements) capacity.Resources {
	cpu, _ := asked(r, corev1.ResourceCPU)
	memory, _ := asked(r, corev1.ResourceMemory)
	disk, _ := asked(r, corev1.ResourceEphemeralStorage)
	gpus, _ := asked(r, ResourceGPU)
	return capacity.Resources{
		MilliCPU:       cpu.MilliValue(),
		MemoryBytes:    memory.Value(),
		EphemeralBytes: disk.Value(),
		GPUs:           gpus.Value(),
		Pods:           1,
	}
}

func checkAmounts(p *input.Problems, path *field.Path, list corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at, q := path.Key(string(name)), list[name]
		switch {
		case q.Sign() <= 0:
			p.Try(p.Invalid(at, q.String(), "must be more than 0"), false, input.Edits{at: nil}, "remove it if you need none")
		case q.CmpInt64(math.MaxInt64) >= 0 || name == corev1.ResourceCPU && q.CmpInt64(mostCPUs) > 0:
			p.Invalid(at, q.String(), "is more than any machine has; write less")
		case byteResources[name] && q.Cmp(resource.MustParse("1Mi")) < 0:
			p.Instead(at, q.String(), q.String()+"Gi", "is less than 1Mi, and %s without a unit is in bytes: add one", name)
		case isExtended(name) && !isWholeQuantity(q):
			p.Invalid(at, q.String(), "must be a whole number, because pods get whole devices; round it")
		}
	}
}

// byteResources are the resources measured in bytes.
var byteResources = map[corev1.ResourceName]bool{corev1.ResourceMemory: true, corev1.ResourceEphemeralStorage: true}

// mostCPUs is more than any machine has, and small enough for an int64 of thousandths.
const mostCPUs = 1 << 20

// isExtended reports whether a device plugin counts a resource. Kubernetes does not overcommit
// these, and counts whole numbers of them.
func isExtended(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

func isWholeQuantity(q resource.Quantity) bool {
	n, ok := q.AsInt64()
	return ok && q.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) == 0
}

func checkRequestsWithinLimits(p *input.Problems, path *field.Path, r corev1.ResourceRequirements) {
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		at, request := path.Child("requests").Key(string(name)), r.Requests[name]
		limit, limited := r.Limits[name]
		switch {
		case isExtended(name) && (!limited || request.Cmp(limit) != 0):
			p.Invalid(at, request.String(), "must equal the limit, because %s cannot be overcommitted; remove it, and write it only in limits", name)
		case limited && request.Cmp(limit) > 0:
			p.Invalid(at, request.String(), "must be at most %s, the limit", limit.String())
		}
	}
}

// checkEnvVars checks the environment variables of a container.
func checkEnvVars(p *input.Problems, path *field.Path, env []corev1.EnvVar) {
	for i, e := range env {
		input.Form(p, path.Index(i).Child("name"), "variable", e.Name)
	}
}

package config

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
)

// GCSFuseSidecar is what the container asks for that GKE puts into the pods of a
// role of a job, and whether it puts one there.
func (s *Stack) GCSFuseSidecar(job *Job, role *Role) (capacity.Resources, bool) {
	var most capacity.Resources
	found := false
	for _, mount := range s.claimMounts(job, role) {
		for _, volume := range s.Volumes {
			if volume.Name == mount.Volume && volume.GCSFuse != nil {
				asks := volume.GCSFuse.Sidecar.requests()
				most, found = capacity.Resources{
					MilliCPU:       max(most.MilliCPU, asks.MilliCPU),
					MemoryBytes:    max(most.MemoryBytes, asks.MemoryBytes),
					EphemeralBytes: max(most.EphemeralBytes, asks.EphemeralBytes),
				}, true
			}
		}
	}
	return most, found
}

// requests leaves out what is no quantity.
func (c Sidecar) requests() capacity.Resources {
	amount := func(text string) *resource.Quantity {
		q, _ := parseQuantity(text)
		return &q
	}
	return capacity.Resources{
		MilliCPU:       amount(c.CPU).MilliValue(),
		MemoryBytes:    amount(c.Memory).Value(),
		EphemeralBytes: amount(c.EphemeralStorage).Value(),
	}
}

// podRequests is what the scheduler counts of a replica of a role, with the
// container that its mounts bring.
func (s *Stack) podRequests(job *Job, role *Role) capacity.Resources {
	sidecar, _ := s.GCSFuseSidecar(job, role)
	return requests(role.Resources).Plus(sidecar)
}

package config

import "persia/capacity"

// GCSFuseSidecar is what the container asks for that GKE puts into the pods of a
// role of a job, and whether it puts one there.
func (s *Stack) GCSFuseSidecar(job *Job, role *Role) (capacity.Resources, bool) {
	var most capacity.Resources
	found := false
	for _, mount := range s.claimMounts(job, role) {
		for _, v := range s.Storage {
			if v.Name == mount.Volume && v.MountedBySidecar() {
				asks := v.GCSFuse.Sidecar.Requests()
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

// podRequests is what the scheduler counts of a replica of a role, with the
// container that its mounts bring.
func (s *Stack) podRequests(job *Job, role *Role) capacity.Resources {
	sidecar, _ := s.GCSFuseSidecar(job, role)
	return requests(role.Resources).Plus(sidecar)
}

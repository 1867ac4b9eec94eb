package config

import (
	"persia/capacity"
	"persia/config/job"
	"persia/config/pod"
)

// GCSFuseSidecar is what the container asks for that GKE puts into the pods of a
// role of a job, and whether it puts one there.
func (s *Stack) GCSFuseSidecar(j *job.Job, role *job.Role) (capacity.Resources, bool) {
	var most capacity.Resources
	found := false
	for _, mount := range j.ClaimMounts(role, s.jobVolumes()) {
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
func (s planner) podRequests(j *job.Job, role *job.Role) capacity.Resources {
	sidecar, _ := s.GCSFuseSidecar(j, role)
	return pod.Requests(role.Resources).Plus(sidecar)
}

package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/jobspec"
	"persia/config/pod"
	"persia/config/poolspec"
)

// GCSFuseSidecar is what the container asks for that GKE puts into the pods of a
// role of a job, and whether it puts one there.
func (s *Stack) GCSFuseSidecar(j *jobspec.Job, kind jobspec.Kind) (capacity.Resources, bool) {
	var most capacity.Resources
	found := false
	for _, mount := range j.ClaimMounts(kind.Of(j), s.jobVolumes()) {
		for _, v := range s.Storage {
			if v.Name == mount.Volume && v.MountedBySidecar() {
				asks := v.GCSFuse.Sidecar.Requests()
				if !mount.ReadOnly {
					asks.EphemeralBytes = max(asks.EphemeralBytes, j.OpenCheckpointBytes(kind))
				}
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
func (s planner) podRequests(j *jobspec.Job, kind jobspec.Kind) capacity.Resources {
	sidecar, _ := s.GCSFuseSidecar(j, kind)
	return pod.Requests(kind.Of(j).Resources).Plus(sidecar)
}

// checkpointFits checks that the disk of a node holds what a replica writes of a checkpoint
// at the same time, before the sidecar has sent it to the bucket.
func (v *validator) checkpointFits(at *field.Path, j *jobspec.Job, role jobspec.NamedRole, pool poolspec.Pool) {
	sidecar, ok := v.stack.GCSFuseSidecar(j, role.Kind)
	room := planner{v.stack}.nodeRoom(pool).EphemeralBytes
	if open := j.OpenCheckpointBytes(role.Kind); !ok || open < sidecar.EphemeralBytes || open <= room {
		return
	}
	v.Invalid(at, j.HashmapShards, "makes %s write %s of a checkpoint at the same time, which stay on the node until they are in the bucket, but the disk of a node of pool %q leaves %s to pods; increase disk.sizeGb of the pool, or num_hashmap_internal_shards of the job's global configuration and hashmapShards with it",
		role.Field, gibibytes(sidecar.EphemeralBytes), pool.Name, gibibytes(room))
}

func gibibytes(bytes int64) string {
	return fmt.Sprintf("%.1fGi", float64(bytes)/capacity.GiB)
}

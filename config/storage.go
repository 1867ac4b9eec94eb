package config

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/config/jobspec"
	"persia/config/pod"
	"persia/config/poolspec"
	"persia/config/volumespec"
	"persia/gcp"
)

func (s *Stack) volumeContext() volumespec.Context {
	context := volumespec.Context{Project: s.Project, Existing: s.Cluster.Existing != nil, Region: s.Cluster.Region, Zones: s.Cluster.Zones}
	if !context.Existing {
		context.DriverOff = func(driver string) bool { return !s.Cluster.CSIDrivers.On(driver) }
		context.NoWorkloadIdentity = !s.Cluster.WorkloadIdentity
	}
	return context
}

func (s *Stack) checkStorage(p *check.Problems) {
	volumespec.Check(p, field.NewPath(storageKey), s.Storage, s.volumeContext(), s.usersOf)
}

// jobVolumes describes the volumes of the stack to the rules of jobs.
func (s *Stack) jobVolumes() []jobspec.Volume {
	volumes := make([]jobspec.Volume, len(s.Storage))
	for i, v := range s.Storage {
		volumes[i] = jobspec.Volume{Name: v.Name, Claim: v.Claim, Sidecar: v.MountedBySidecar(), OneNode: v.OnOneNode(), AccessModes: v.AccessModes}
	}
	return volumes
}

// volumePool describes a node pool to the rules of volumes.
func (s *Stack) volumePool(pool poolspec.Pool) volumespec.Pool {
	p := volumespec.Pool{Name: pool.Name, Nodes: pool.MostNodes(), MachineType: pool.MachineType, COS: pool.ImageType == gcp.ImageCOS}
	if s.Cluster.Existing != nil {
		return p
	}
	p.Zones = pool.Zones
	if machine, ok := pool.Machine(s.MachineTypes); ok {
		p.Disks = machine.BootDisks()
	}
	return p
}

// JobsWrite reports whether a job can write to a volume.
func (s *Stack) JobsWrite(volume string) bool { return !s.usersOf(volume).ReadOnly }

// usersOf returns the node pools of the roles that mount a volume.
func (s *Stack) usersOf(name string) volumespec.Users {
	users := volumespec.Users{ReadOnly: true}
	volumes := s.jobVolumes()
	mounted := map[string]bool{}
	for i := range s.Jobs {
		job := &s.Jobs[i]
		for _, r := range job.Roles() {
			for _, m := range job.ClaimMounts(r.Role, volumes) {
				if m.Volume == name {
					mounted[r.NodePool], users.ReadOnly = true, users.ReadOnly && m.ReadOnly
				}
			}
		}
	}
	for _, pool := range s.Pools() {
		if mounted[pool.Name] {
			users.Pools = append(users.Pools, s.volumePool(pool))
		}
	}
	slices.SortFunc(users.Pools, func(a, b volumespec.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return users
}

// Mounts reports whether a role of the job mounts a volume.
func (s *Stack) Mounts(j *jobspec.Job, volume string) bool {
	volumes := s.jobVolumes()
	return slices.ContainsFunc(j.Roles(), func(r jobspec.NamedRole) bool {
		return slices.ContainsFunc(j.ClaimMounts(r.Role, volumes), func(m jobspec.Mount) bool { return m.Volume == volume })
	})
}

// StoredVolumes returns all volumes of the stack, including the volume of PEDL's database.
func (s *Stack) StoredVolumes() []volumespec.Stored {
	var volumes []volumespec.Stored
	for i, v := range s.Storage {
		volumes = append(volumes, volumespec.Stored{Volume: v, Path: field.NewPath(storageKey).Index(i), Contents: "checkpoints"})
	}
	if v, ok := s.PEDLDatabase(); ok {
		volumes = append(volumes, volumespec.Stored{Volume: v, Path: field.NewPath(pedlKey, "postgresql", "persistence"), Contents: "of PEDL's data"})
	}
	return volumes
}

// warnOfSizes warns of disks and Filestore instances that are smaller than the memory of the
// embedding parameter servers, whose checkpoint they hold. Others have no fixed size.
func (s *Stack) warnOfSizes(p *check.Problems) {
	for i := range s.Jobs {
		servers, j := s.Jobs[i].EmbeddingParameterServer, &s.Jobs[i]
		for _, mount := range j.ClaimMounts(&servers, s.jobVolumes()) {
			for k, v := range s.Storage {
				needs := pod.Requests(servers.Resources).MemoryBytes / capacity.GiB * int64(servers.Replicas)
				if v.Name == mount.Volume && !mount.ReadOnly && (v.PersistentDisk != nil || v.Filestore != nil) && v.SizeGiB() < needs {
					p.Warn(field.NewPath(storageKey).Index(k).Child("size"), "%s is less than the %dGi of memory of the embedding parameter servers of %s, which a checkpoint may take; write more, or use gcsFuse", v.Size, needs, j.Name)
				}
			}
		}
	}
}

// GCSFuseSidecar returns the requests of the container that GKE adds to the pods of a role
// that mounts buckets, and whether the role mounts one.
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

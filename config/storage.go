package config

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/jobspec"
	"persia/config/poolspec"
	"persia/config/volumespec"
	"persia/gcp"
)

// volumeContext is what volumes have to know of the rest of the stack file.
func (s *Stack) volumeContext() volumespec.Context {
	context := volumespec.Context{Project: s.Project, Existing: s.Cluster.Existing != nil, Region: s.Cluster.Region, Zones: s.Cluster.Zones}
	if context.Existing {
		return context // nothing else is said of the cluster
	}
	context.DriverOff = func(driver string) bool { return !s.Cluster.CSIDrivers.On(driver) }
	context.NoWorkloadIdentity = !s.Cluster.WorkloadIdentity
	return context
}

func (v *validator) storage() {
	volumespec.Check(v.Problems, field.NewPath(storageKey), v.stack.Storage, v.stack.volumeContext(), v.stack.usersOf)
}

// usersOf are the roles that mount a volume.
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

// volumePool is a pool as far as storage is concerned with it.
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

// StoredVolumes are all volumes of the stack: those of the jobs, and that of PEDL's
// database.
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

// createdDisks are the disks that the stack creates for volumes.
func (s planner) createdDisks() []capacity.Disk {
	var disks []capacity.Disk
	for _, v := range s.StoredVolumes() {
		disks = append(disks, v.Source().Disks(v.SizeGiB())...)
	}
	return disks
}

package config

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/job"
	"persia/config/nodepool"
	"persia/config/volume"
	"persia/gcp"
)

// volumePlace is what volumes have to know of the rest of the stack file.
func (s *Stack) volumePlace() volume.Place {
	place := volume.Place{Project: s.Project, Existing: s.Cluster.Existing != nil, Region: s.Cluster.Region, Zones: s.Cluster.Zones}
	if place.Existing {
		return place // nothing else is said of the cluster
	}
	place.DriverOff = func(driver string) bool { return !s.Cluster.CSIDrivers.On(driver) }
	place.NoWorkloadIdentity = !s.Cluster.WorkloadIdentity
	return place
}

func (v *validator) storage() {
	volume.Check(v.Problems, field.NewPath(storageKey), v.stack.Storage, v.stack.volumePlace(), v.stack.usersOf)
}

// usersOf are the roles that mount a volume.
func (s *Stack) usersOf(name string) volume.Users {
	users := volume.Users{ReadOnly: true}
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
	slices.SortFunc(users.Pools, func(a, b volume.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return users
}

// Mounts reports whether a role of the job mounts a volume.
func (s *Stack) Mounts(j *job.Job, volume string) bool {
	volumes := s.jobVolumes()
	return slices.ContainsFunc(j.Roles(), func(r job.NamedRole) bool {
		return slices.ContainsFunc(j.ClaimMounts(r.Role, volumes), func(m job.Mount) bool { return m.Volume == volume })
	})
}

// volumePool is a pool as far as storage is concerned with it.
func (s *Stack) volumePool(pool nodepool.Pool) volume.Pool {
	p := volume.Pool{Name: pool.Name, Nodes: pool.MostNodes(), MachineType: pool.MachineType, COS: pool.ImageType == gcp.ImageCOS}
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
func (s *Stack) StoredVolumes() []volume.Stored {
	var volumes []volume.Stored
	for i, v := range s.Storage {
		volumes = append(volumes, volume.Stored{Volume: v, Path: field.NewPath(storageKey).Index(i), Contents: "checkpoints"})
	}
	if v, ok := s.PEDLDatabase(); ok {
		volumes = append(volumes, volume.Stored{Volume: v, Path: field.NewPath(pedlKey, "postgresql", "persistence"), Contents: "of PEDL's data"})
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

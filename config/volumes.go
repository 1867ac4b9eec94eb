package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (v *validator) volumes() {
	path, volumes := field.NewPath(volumesKey), v.stack.Volumes
	names, claims, sources := make([]string, len(volumes)), make([]string, len(volumes)), make([]string, len(volumes))
	for i := range volumes {
		volume := &volumes[i]
		names[i], claims[i], sources[i] = volume.Name, volume.Claim, volume.source()
		v.volume(path.Index(i), volume)
	}
	unique(names, func(i, first int) {
		v.duplicate(path.Index(i).Child("name"), names[i], "is that of volumes[%d]; each volume has a name of its own", first)
	})
	unique(claims, func(i, first int) {
		v.duplicate(path.Index(i).Child("claim"), claims[i], "is that of volumes[%d]; each volume has a claim of its own", first)
	})
	unique(sources, func(i, first int) {
		v.duplicate(path.Index(i), sources[i], "is what volumes[%d] is over; mount that volume in both places", first)
	})
}

func (v *validator) volume(path *field.Path, volume *Volume) {
	v.name(path.Child("name"), volume.Name, validation.IsDNS1123Label)
	if volume.Claim != "" {
		v.name(path.Child("claim"), volume.Claim, validation.IsDNS1123Subdomain)
	}
	v.volumeSize(path.Child("size"), volume)
	v.accessModes(path.Child("accessModes"), volume)
	v.reclaimPolicy(path.Child("reclaimPolicy"), volume)
	v.volumeLabels(path.Child("labels"), volume.Labels)
	v.source(path, volume)
	v.reachable(path, volume)
}

// volumeSize checks a size, and of storage that is created whether it is to be had.
func (v *validator) volumeSize(path *field.Path, volume *Volume) {
	size, err := parseQuantity(volume.Size)
	switch {
	case volume.Size == "":
		v.required(path, "write a quantity like 10Gi")
	case err != nil:
		v.invalid(path, volume.Size, "%s", err)
	case size.Sign() <= 0:
		v.invalid(path, volume.Size, "must be more than 0, like 10Gi")
	case volume.Filestore != nil && volume.Filestore.Create != nil:
		v.filestoreSize(path, volume)
	case volume.PersistentDisk != nil && volume.PersistentDisk.Create != nil:
		v.diskSize(path, volume)
	}
}

func (v *validator) accessModes(path *field.Path, volume *Volume) {
	for i, mode := range volume.AccessModes {
		v.accessMode(path.Index(i), volume, mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany)
	}
	unique(volume.AccessModes, func(i, _ int) {
		v.duplicate(path.Index(i), volume.AccessModes[i], "write each access mode once")
	})
}

func (v *validator) accessMode(path *field.Path, volume *Volume, mode corev1.PersistentVolumeAccessMode, allowed ...corev1.PersistentVolumeAccessMode) {
	if oneOf(v, path, mode, allowed...) && mode == corev1.ReadWriteMany && volume.isBlock() {
		v.invalid(path, mode, "is not for a disk, whose file system several nodes would destroy; write ReadWriteOnce, or use filestore or gcsFuse")
	}
}

// reclaimPolicy allows Delete where a CSI driver does it. What the stack creates it
// deletes itself, and has a word of its own for it.
func (v *validator) reclaimPolicy(path *field.Path, volume *Volume) {
	policy := volume.ReclaimPolicy
	if !oneOf(v, path, policy, corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete) ||
		policy == corev1.PersistentVolumeReclaimRetain {
		return
	}
	switch {
	case volume.Creates():
		v.invalid(path, policy, "is for storage that is there already; write create.deleteWithStack: true if the data may go with the stack")
	case volume.CSI == nil && volume.PersistentDisk == nil && volume.Filestore == nil:
		v.invalid(path, policy, "is what no driver does for this kind of volume; remove it, and delete the data yourself")
	}
}

// volumeLabels checks labels of the user's.
func (v *validator) volumeLabels(path *field.Path, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := path.Key(key)
		for _, message := range validation.IsQualifiedName(key) {
			v.invalid(at, key, "%s", message)
		}
		for _, message := range validation.IsValidLabelValue(labels[key]) {
			v.invalid(at, labels[key], "%s", message)
		}
		if strings.HasPrefix(key, "app.kubernetes.io/") {
			v.invalid(at, key, "is one of the labels that the program writes itself; choose a prefix of your own")
		}
	}
}

// reachable checks that a volume which only one node can mount is not mounted
// from more than one.
func (v *validator) reachable(path *field.Path, volume *Volume) {
	users := v.stack.usersOf(volume.Name)
	v.nearDisk(path, volume, users.pools)
	if users.nodes < 2 {
		return
	}
	from := strings.Join(users.pools, ", ")
	const mounts = "the roles that mount the volume stand on up to %d nodes (pools %s)"
	switch directory, modes := path.Child("accessModes"), volume.AccessModes; {
	case volume.HostPath != nil:
		v.invalid(path.Child("hostPath"), volume.HostPath.Path, "is a directory of each node by itself, and "+mounts+"; use gcsFuse, or put these roles on one pool of one node", users.nodes, from)
	case volume.Local != nil:
		v.invalid(path.Child("local"), volume.Local.Path, "is a directory of the node %s, and "+mounts+"; use gcsFuse, or put these roles on one pool of one node", volume.Local.Node, users.nodes, from)
	case slices.Contains(modes, corev1.ReadWriteMany):
	case slices.Contains(modes, corev1.ReadOnlyMany) && users.readOnly:
	case slices.Contains(modes, corev1.ReadOnlyMany):
		v.invalid(directory, modes, "lets many nodes read and one write, and "+mounts+"; write readOnly: true in every mount of it", users.nodes, from)
	case volume.isBlock():
		v.invalid(directory, modes, "lets one node mount the volume, and "+mounts+"; use filestore or gcsFuse, or put these roles on one pool of one node", users.nodes, from)
	default:
		v.invalid(directory, modes, "lets one node mount the volume, and "+mounts+"; write [ReadWriteMany], or put these roles on one pool of one node", users.nodes, from)
	}
}

// users are those that mount a volume.
type users struct {
	// pools are the pools that they stand on, sorted.
	pools []string
	// nodes is the number of nodes that these have at most.
	nodes int
	// readOnly says that none of them writes.
	readOnly bool
}

func (s *Stack) usersOf(volume string) users {
	found := users{readOnly: true}
	for i := range s.Jobs {
		job := &s.Jobs[i]
		for _, r := range job.roles() {
			mounted := false
			for _, m := range s.claimMounts(job, r.Role) {
				if m.Volume == volume {
					mounted, found.readOnly = true, found.readOnly && m.ReadOnly
				}
			}
			if p, ok := s.pool(r.NodePool); ok && mounted && !slices.Contains(found.pools, p.Name) {
				found.pools, found.nodes = append(found.pools, p.Name), found.nodes+p.MostNodes()
			}
		}
	}
	slices.Sort(found.pools)
	return found
}

// StoredVolume is a volume of the stack, and where it stands in the stack file.
type StoredVolume struct {
	Volume
	Path *field.Path
}

// StoredVolumes are all volumes of the stack: those of the jobs, and that of PEDL's
// database.
func (s *Stack) StoredVolumes() []StoredVolume {
	var volumes []StoredVolume
	for i, volume := range s.Volumes {
		volumes = append(volumes, StoredVolume{volume, field.NewPath(volumesKey).Index(i)})
	}
	if volume, ok := s.PEDLDatabase(); ok {
		volumes = append(volumes, StoredVolume{volume, persistencePath()})
	}
	return volumes
}

// Creates reports whether the storage that a volume is over is made by the stack.
func (v *Volume) Creates() bool {
	return v.Filestore != nil && v.Filestore.Create != nil ||
		v.GCSFuse != nil && v.GCSFuse.Create != nil ||
		v.PersistentDisk != nil && v.PersistentDisk.Create != nil
}

// MountsOf are the mounts of a role of a job: the job's, and its own.
func (j *Job) MountsOf(role Role) []Mount { return slices.Concat(j.Mounts, role.Mounts) }

// DeletesData reports whether a volume's data goes when the stack does.
func (v *Volume) DeletesData() bool {
	return v.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete ||
		v.Filestore != nil && v.Filestore.Create != nil && v.Filestore.Create.DeleteWithStack ||
		v.GCSFuse != nil && v.GCSFuse.Create != nil && v.GCSFuse.Create.DeleteWithStack ||
		v.PersistentDisk != nil && v.PersistentDisk.Create != nil && v.PersistentDisk.Create.DeleteWithStack
}

// contents is what is on a volume.
func (v StoredVolume) contents() string {
	if v.Name == PEDLVolume {
		return "of PEDL's data"
	}
	return "checkpoints"
}

// volumeWarnings are about data that goes.
func (s *Stack) volumeWarnings() []string {
	var warnings []string
	for _, volume := range s.StoredVolumes() {
		at := volume.Path
		if volume.DeletesData() {
			warnings = append(warnings, fmt.Sprintf("%s: `pulumi destroy` deletes the storage of %s with all %s, as the stack file says", at, volume.Name, volume.contents()))
		}
		if g := volume.GCSFuse; g != nil && g.Create != nil && g.Create.DeleteAfterDays > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: Cloud Storage deletes checkpoints in %s after %d days, as the stack file says", at, g.Bucket, g.Create.DeleteAfterDays))
		}
	}
	return warnings
}

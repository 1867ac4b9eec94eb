package effects

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"persia/config/input"
)

// volumes says which data is deleted, and which no pod can see any more. Package storage warns of
// volumes that have another storage.
func volumes(before, after Stack) []string {
	var effects []string
	for _, name := range slices.Sorted(maps.Keys(before.Volumes)) {
		was := before.Volumes[name]
		is, stays := after.Volumes[name]
		at := storedFolder{was.Storage, was.Folder}
		switch {
		case stays && is.Storage == was.Storage && is.Folder != was.Folder:
			effects = append(effects, fmt.Sprintf("persia:storage: the volume %s showed %s, and shows %s to pods that start from now on. The data stays in %s; to see it again, restore only-dir in mountOptions",
				name, at, storedFolder{is.Storage, is.Folder}, at))
		case stays && is.Storage == was.Storage && is.Options != was.Options:
			if jobs := keep(before, after, was.Claim); len(jobs) > 0 {
				effects = append(effects, fmt.Sprintf("persia:storage: the volume %s has other mount options, and running pods of %s keep the old ones. To apply them, write suspend: true for the job, run `pulumi up`, remove suspend, and run it again",
					name, input.And(jobs)))
			}
		case stays:
		case was.DeletesData:
			effects = append(effects, fmt.Sprintf("persia:storage: the volume %s is no longer in the stack file, and its driver deletes %s with all data, because its reclaimPolicy is Delete. To keep the data, write the volume again with reclaimPolicy: Retain, run `pulumi up`, and remove it then",
				name, was.Storage))
		case !slices.Contains(folders(after), at):
			effects = append(effects, fmt.Sprintf("persia:storage: the volume %s is no longer in the stack file. Its data stays in %s, where no pod sees it; write the volume again to use it", name, at))
		}
	}
	return effects
}

// deleted returns the storage that drivers delete, because a volume with the reclaimPolicy Delete
// goes.
func deleted(before, after Stack) map[string]bool {
	gone := map[string]bool{}
	for name, was := range before.Volumes {
		if was.DeletesData && (after.Replaced != nil || after.Volumes[name].Storage != was.Storage) {
			gone[was.Storage] = true
		}
	}
	return gone
}

// unlessDeleted returns what happens to data that stays, or says that the update deletes it.
func (s Stack) unlessDeleted(at storedFolder, stays string) string {
	if s.deleted[at.storage] {
		return fmt.Sprintf("This deletes %s with all data, because the reclaimPolicy of its volume is Delete", at.storage)
	}
	return stays
}

// keep returns the running jobs with a pod that mounts a claim and that the update does not replace.
func keep(before, after Stack, claim string) []string {
	return slices.DeleteFunc(before.Running(), func(name string) bool {
		is, stays := after.Jobs[name]
		restarted := job{name: name, was: before.Jobs[name], is: is}.restarted()
		return !stays || !slices.ContainsFunc(slices.Collect(maps.Keys(is.Roles)), func(role string) bool {
			return is.Roles[role].Replicas > 0 && !slices.Contains(restarted, role) && slices.ContainsFunc(is.Roles[role].Pod.Spec.Volumes, func(v corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
			})
		})
	})
}

// folders returns the directories that the volumes of a stack contain.
func folders(s Stack) []storedFolder {
	var all []storedFolder
	for _, volume := range s.Volumes {
		all = append(all, storedFolder{volume.Storage, volume.Folder})
	}
	return all
}

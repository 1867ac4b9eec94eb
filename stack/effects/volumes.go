package effects

import (
	"fmt"
	"maps"
	"slices"
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

// folders returns the directories that the volumes of a stack contain.
func folders(s Stack) []storedFolder {
	var all []storedFolder
	for _, volume := range s.Volumes {
		all = append(all, storedFolder{volume.Storage, volume.Folder})
	}
	return all
}

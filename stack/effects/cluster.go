package effects

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"persia/infra/gke"
)

// cluster says that the update replaces the cluster.
func cluster(before, after Stack) []string {
	if after.Replaced == nil {
		return nil
	}
	var changes []string
	for _, setting := range after.Replaced.Settings {
		changes = append(changes, fmt.Sprintf("%s was %s and is now %s", setting.Path, setting.Was, setting.Is))
	}
	// Unlike a pool, a cluster that loses its protection in the same update is refused too: its pools
	// still have theirs in the state.
	return []string{fmt.Sprintf("%s: %sthis deletes the cluster %s with everything in it, and all of the stack moves to another cluster",
		strings.Join(changes, ", "), refused(before.Protected), after.Replaced.Cluster)}
}

// clusterData describes which data survives when the update replaces the cluster.
func clusterData(before, after Stack) []string {
	if after.Replaced == nil {
		return nil
	}
	var effects []string
	for _, name := range slices.Sorted(maps.Keys(before.Volumes)) {
		switch volume := before.Volumes[name]; {
		case before.deleted[volume.Storage]:
			effects = append(effects, fmt.Sprintf("persia:storage: %s", before.unlessDeleted(storedFolder{storage: volume.Storage}, "")))
		case formerProject(after.Replaced) != "" && strings.HasPrefix(volume.Storage, "Filestore "):
			effects = append(effects, fmt.Sprintf("persia:storage: the data of the volume %s stays in the %s of the project %s, and the new cluster does not have it", name, volume.Storage, formerProject(after.Replaced)))
		case strings.HasPrefix(volume.Storage, directory):
			effects = append(effects, fmt.Sprintf("persia:storage: the data of the volume %s is lost with the nodes, because it is in a %s", name, volume.Storage))
		case after.Volumes[name].Storage == volume.Storage:
			effects = append(effects, fmt.Sprintf("persia:storage: the data of the volume %s stays in %s, and the new cluster has it", name, volume.Storage))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.PEDL)) {
		pod := before.PEDL[name]
		claim, has := before.dynamicClaim(pod)
		switch {
		case keepsNothing(pod):
			effects = append(effects, fmt.Sprintf("persia:pedl: the data of %s is lost with its pod", name))
		case has:
			effects = append(effects, fmt.Sprintf("persia:pedl: the data of %s does not move: its disk, of the claim %s, stays in Google Cloud, and %s begins empty in the new cluster. To keep the data, copy it first with pg_dump", name, claim, name))
		}
	}
	return effects
}

// formerProject returns the project of a replaced cluster, or "" if it stays the same.
func formerProject(replaced *gke.Replacement) string {
	for _, setting := range replaced.Settings {
		if setting.Path.String() == "persia:project" {
			return setting.Was
		}
	}
	return ""
}

package effects

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"persia/workload/pedl"
)

// platform describes the effects on PEDL in a cluster that stays.
func platform(before, after Stack) []string {
	if after.Replaced != nil {
		return nil
	}
	var effects, removed []string
	var left strings.Builder
	for _, name := range slices.Sorted(maps.Keys(before.PEDL)) {
		was := before.PEDL[name]
		is, stays := after.PEDL[name]
		at := before.data(was)
		switch {
		case !stays:
			removed = append(removed, name)
			claim, has := before.dynamicClaim(was)
			switch {
			case keepsNothing(was):
				left.WriteString(lostData(name))
			case has:
				fmt.Fprintf(&left, ". The data of %s stays on the claim %s; write it again to use the data", name, claim)
			}
		case restarts(before, after, was, is):
			text := fmt.Sprintf("persia:pedl: pods of %s of PEDL restart, and are away until they are ready", name)
			switch now := after.data(is); {
			case keepsNothing(was):
				text += lostData(name)
			case at != now && keepsNothing(is):
				text += fmt.Sprintf(". %s begins without data, and loses its new data with its pod. %s", name, before.unlessDeleted(at, fmt.Sprintf("The old data stays in %s; to use it again, restore persia:pedl.postgresql.persistence", at)))
			case at != now:
				text += fmt.Sprintf(". %s uses the data in %s. %s", name, now, before.unlessDeleted(at, fmt.Sprintf("The data until now stays in %s; to use it again, restore persia:pedl.postgresql.persistence", at)))
			}
			effects = append(effects, text)
		}
	}
	if len(removed) > 0 {
		effects = append(effects, fmt.Sprintf("persia:pedl: this deletes the pods of %s, because the stack file no longer has them%s", strings.Join(removed, ", "), left.String()))
	}
	return effects
}

// restarts reports whether the pods of a workload of PEDL start again: because they differ, or because a
// ConfigMap or a Secret that they mount does. Pulumi learns its version, which is an annotation of the
// pods, only in the update.
func restarts(before, after Stack, was, is Role) bool {
	return was.Digest != is.Digest || slices.ContainsFunc(is.Pod.Spec.Volumes, func(volume corev1.Volume) bool {
		switch {
		case volume.ConfigMap != nil:
			return differ(before.ConfigMaps, after.ConfigMaps, volume.ConfigMap.Name)
		case volume.Secret != nil:
			return differ(before.Secrets, after.Secrets, volume.Secret.SecretName)
		default:
			return false
		}
	})
}

// differ reports whether the files of an object differ, if they are known.
func differ(before, after map[string]map[string]string, name string) bool {
	files, known := after[name]
	return known && !maps.Equal(before[name], files)
}

// data returns the directory with the data of a workload of PEDL, or "" if the data is lost with
// the pod.
func (s Stack) data(role Role) storedFolder {
	for _, mount := range role.container().VolumeMounts {
		if mount.Name == pedl.DataVolume {
			return s.mounted(role, mount)
		}
	}
	return storedFolder{}
}

// lostData says that the data of a workload is lost with its pod.
func lostData(name string) string {
	return fmt.Sprintf(". The data of %s is lost with its pod: to keep it, set persia:pedl.postgresql.persistence", name)
}

// keepsNothing reports whether the data of a workload of PEDL is lost with its pod.
func keepsNothing(role Role) bool {
	return slices.ContainsFunc(role.Pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == pedl.DataVolume && volume.EmptyDir != nil })
}

// dynamicClaim returns the claim with the data of a workload of PEDL, if a storage class made its
// volume, which is then no volume of the stack.
func (s Stack) dynamicClaim(role Role) (string, bool) {
	for _, volume := range role.Pod.Spec.Volumes {
		if volume.Name != pedl.DataVolume || volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := volume.PersistentVolumeClaim.ClaimName
		for _, of := range s.Volumes {
			if of.Claim == claim {
				return "", false
			}
		}
		return claim, true
	}
	return "", false
}

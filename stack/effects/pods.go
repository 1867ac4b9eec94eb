package effects

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"persia/config"
)

// restarted returns the roles of a job whose pods an update replaces.
func (j job) restarted() []string {
	var roles []string
	for _, kind := range config.Kinds() {
		was, had := j.was.Roles[kind.Name]
		is, has := j.is.Roles[kind.Name]
		// PERSIA's operator and JobSet read the number of replicas only when a job begins.
		if had && has && (was.Digest != is.Digest || j.is.Together && was.Replicas != is.Replicas) || had != has || j.was.Queue != j.is.Queue {
			roles = append(roles, kind.Name)
		}
	}
	return roles
}

// plain returns an object as JSON has it.
func plain(object any) any {
	var value any
	if text, err := json.Marshal(object); err != nil || json.Unmarshal(text, &value) != nil {
		return nil
	}
	return value
}

// hidden says which data the pods of a job no longer see or can no longer write to.
func hidden(before, after Stack, j job) []string {
	// Roles by their loss, in the order of a stack file.
	lost := map[loss][]string{}
	var order []loss
	for _, kind := range config.Kinds() {
		was, is := j.was.Roles[kind.Name], j.is.Roles[kind.Name]
		for _, mount := range was.container().VolumeMounts {
			had := before.mounted(was, mount)
			if had == (storedFolder{}) {
				continue // nothing that outlives a pod
			}
			text := ""
			switch seen := is.seeing(after, had, was.claim(mount)); {
			case len(seen) == 0 && before.deleted[had.storage]:
				continue // the effects on volumes say it
			case len(seen) == 0:
				text = fmt.Sprintf("no longer see %s, which they had at %s; the data stays there. To see it again, restore", had, mount.MountPath)
			case !was.readOnly(mount) && !slices.ContainsFunc(seen, func(m corev1.VolumeMount) bool { return !is.readOnly(m) }):
				text = fmt.Sprintf("can no longer write to %s, which they have at %s. To let them write, remove readOnly from", had, mount.MountPath)
			default:
				continue
			}
			of := loss{"mounts", text + " the mount"}
			if is.mounts(mount) && was.volume(mount).PersistentVolumeClaim == nil {
				of = loss{"volumes", text + " the volume " + mount.Name}
			}
			if !slices.Contains(order, of) {
				order = append(order, of)
			}
			lost[of] = append(lost[of], kind.Name)
		}
	}
	var effects []string
	for _, of := range order {
		effects = append(effects, fmt.Sprintf("%s.%s: the pods of %s of the job %s %s", j.path, of.field, strings.Join(lost[of], ", "), j.name, of.text))
	}
	return effects
}

// loss describes the data that pods of a job lose by an edit of a field.
type loss struct{ field, text string }

// seeing returns the mounts of a role that show a directory, or the same of a claim: the effects of a
// volume say that it has another storage.
func (r Role) seeing(s Stack, at storedFolder, claim string) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, mount := range r.container().VolumeMounts {
		if s.mounted(r, mount) == at || claim != "" && r.claim(mount) == claim {
			mounts = append(mounts, mount)
		}
	}
	return mounts
}

// mounts reports whether a role has a mount as it is, whatever its volume is.
func (r Role) mounts(mount corev1.VolumeMount) bool {
	return slices.ContainsFunc(r.container().VolumeMounts, func(m corev1.VolumeMount) bool { return equality.Semantic.DeepEqual(m, mount) })
}

// container returns the container of a role.
func (r Role) container() corev1.Container {
	if len(r.Pod.Spec.Containers) == 0 {
		return corev1.Container{}
	}
	return r.Pod.Spec.Containers[0]
}

// variable returns the value of an environment variable, or "".
func (r Role) variable(name string) string {
	for _, entry := range r.container().Env {
		if entry.Name == name {
			return entry.Value
		}
	}
	return ""
}

// volume returns the volume of a mount.
func (r Role) volume(mount corev1.VolumeMount) corev1.Volume {
	for _, volume := range r.Pod.Spec.Volumes {
		if volume.Name == mount.Name {
			return volume
		}
	}
	return corev1.Volume{}
}

// claim names the claim of a mount and the directory in it, or is "". Two mounts of one directory of
// a claim have one name.
func (r Role) claim(mount corev1.VolumeMount) string {
	if of := r.volume(mount).PersistentVolumeClaim; of != nil {
		return path.Join(of.ClaimName, cmp.Or(mount.SubPathExpr, mount.SubPath))
	}
	return ""
}

// readOnly reports whether pods cannot write to a mount.
func (r Role) readOnly(mount corev1.VolumeMount) bool {
	volume := r.volume(mount)
	return mount.ReadOnly || volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ReadOnly ||
		volume.NFS != nil && volume.NFS.ReadOnly || volume.CSI != nil && volume.CSI.ReadOnly != nil && *volume.CSI.ReadOnly
}

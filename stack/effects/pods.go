package effects

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"persia/config/jobspec"
)

// restarted returns the roles of a job whose pods an update replaces.
func (j job) restarted() []string {
	var roles []string
	for _, kind := range jobspec.Kinds() {
		was, had := j.was.Roles[kind.Name]
		is, has := j.is.Roles[kind.Name]
		// PERSIA's operator and JobSet read the number of replicas only when a job begins.
		if had && has && (!samePods(was.Pod, is.Pod) || j.is.Together && was.Replicas != is.Replicas) || had != has || j.otherEngine() {
			roles = append(roles, kind.Name)
		}
	}
	return roles
}

// otherEngine reports whether something else creates the pods.
func (j job) otherEngine() bool {
	return j.was.ByOperator != j.is.ByOperator || j.was.Together != j.is.Together
}

// samePods reports whether pods of a role stay as they are. The pods in the state have fields
// that the API server has filled in.
func samePods(was, is corev1.PodTemplateSpec) bool {
	if len(was.Spec.Containers) == 0 || len(is.Spec.Containers) == 0 {
		return len(was.Spec.Containers) == len(is.Spec.Containers)
	}
	a, b := was.Spec.Containers[0], is.Spec.Containers[0]
	return given(plain(is), plain(was)) &&
		// The API server does not add to these.
		maps.Equal(was.Labels, is.Labels) && maps.Equal(own(was.Annotations), is.Annotations) &&
		maps.Equal(was.Spec.NodeSelector, is.Spec.NodeSelector) &&
		slices.EqualFunc(was.Spec.Volumes, is.Spec.Volumes, sameVolume) &&
		slices.EqualFunc(a.Env, b.Env, func(x, y corev1.EnvVar) bool {
			return x.Name == y.Name && x.Value == y.Value && (x.ValueFrom == nil) == (y.ValueFrom == nil)
		}) &&
		slices.EqualFunc(a.VolumeMounts, b.VolumeMounts, sameMount) &&
		len(a.Resources.Limits) == len(b.Resources.Limits) && len(a.Resources.Requests) == len(b.Resources.Requests)
}

// plain is an object as JSON has it.
func plain(object any) any {
	var value any
	if text, err := json.Marshal(object); err != nil || json.Unmarshal(text, &value) != nil {
		return nil
	}
	return value
}

// given reports whether a value has everything that is wanted of it. Objects may have more.
func given(want, has any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		object, _ := has.(map[string]any)
		for key, value := range want {
			if !given(value, object[key]) {
				return false
			}
		}
		return true
	case []any:
		list, _ := has.([]any)
		return slices.EqualFunc(want, list, given)
	default:
		return want == has
	}
}

// own are annotations without the ones that kubectl writes.
func own(annotations map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range annotations {
		if !strings.HasPrefix(key, "kubectl.kubernetes.io/") {
			kept[key] = value
		}
	}
	return kept
}

func sameVolume(was, is corev1.Volume) bool {
	x, y := was.PersistentVolumeClaim, is.PersistentVolumeClaim
	return was.Name == is.Name && (x == nil) == (y == nil) && (x == nil || *x == *y)
}

func sameMount(was, is corev1.VolumeMount) bool {
	return was.Name == is.Name && path.Clean(was.MountPath) == path.Clean(is.MountPath) && was.ReadOnly == is.ReadOnly &&
		was.SubPath == is.SubPath && was.SubPathExpr == is.SubPathExpr
}

// hidden says which data the pods of a job no longer see or can no longer write to.
func hidden(before, after Stack, j job) []string {
	// Roles by what they lose, in the order of a stack file.
	lost := map[string][]string{}
	var order []string
	lose := func(role, text string) {
		if !slices.Contains(order, text) {
			order = append(order, text)
		}
		lost[text] = append(lost[text], role)
	}
	for _, kind := range jobspec.Kinds() {
		was, is := j.was.Roles[kind.Name], j.is.Roles[kind.Name]
		for _, mount := range was.container().VolumeMounts {
			had := before.mounted(was, mount)
			if had == (storedFolder{}) {
				continue // nothing that outlives a pod
			}
			sees, writes := false, false
			for _, other := range is.container().VolumeMounts {
				// Package storage warns of a volume that has another storage.
				if after.mounted(is, other) == had || is.source(other) == was.source(mount) {
					sees, writes = true, writes || !other.ReadOnly
				}
			}
			switch {
			case !sees:
				lose(kind.Name, fmt.Sprintf("no longer see %s, which they had at %s; the data stays there. To see it again, restore the mount", had, mount.MountPath))
			case !writes && !mount.ReadOnly:
				lose(kind.Name, fmt.Sprintf("can no longer write to %s, which they have at %s. To let them write, remove readOnly from the mount", had, mount.MountPath))
			}
		}
	}
	var effects []string
	for _, text := range order {
		effects = append(effects, fmt.Sprintf("%s.mounts: the pods of %s of the job %s %s", j.path, strings.Join(lost[text], ", "), j.name, text))
	}
	return effects
}

package config

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// takenVolumes are the names of volumes that the program gives to pods itself.
var takenVolumes = regexp.MustCompile(`^(claim-\d+|launch|state|shared-memory)$`)

// podVolumes checks the volumes that a job's pods have, whatever their kind: what
// is inside a source is for Kubernetes to check.
func (v *validator) podVolumes(at *field.Path, volumes []corev1.Volume) {
	names := make([]string, len(volumes))
	for i, volume := range volumes {
		at := at.Index(i)
		names[i] = volume.Name
		v.name(at.Child("name"), volume.Name, validation.IsDNS1123Label)
		if takenVolumes.MatchString(volume.Name) {
			v.invalid(at.Child("name"), volume.Name, "is that of a volume which every job has; choose another name")
		}
		v.oneSource(at, volume)
	}
	unique(names, func(i, first int) {
		v.duplicate(at.Index(i).Child("name"), names[i], "is that of volumes[%d]; each volume has a name of its own", first)
	})
}

// oneSource checks that a volume has one source.
func (v *validator) oneSource(at *field.Path, volume corev1.Volume) {
	var given []string
	source := reflect.ValueOf(volume.VolumeSource)
	for i := range source.NumField() {
		if !source.Field(i).IsNil() {
			name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0:
		v.required(at, "write where the volume comes from, like persistentVolumeClaim: {claimName: data}")
	case len(given) > 1:
		v.forbidden(at, "has %d sources, %s; write one of them", len(given), and(given))
	}
	if claim := volume.PersistentVolumeClaim; claim != nil {
		v.name(at.Child("persistentVolumeClaim", "claimName"), claim.ClaimName, validation.IsDNS1123Subdomain)
	}
	if host := volume.HostPath; host != nil && !path.IsAbs(host.Path) {
		v.invalid(at.Child("hostPath", "path"), host.Path, "must be absolute; write %s", path.Join("/", host.Path))
	}
}

// volumeMounts checks where a role mounts the volumes of its job.
func (v *validator) volumeMounts(at *field.Path, job *Job, role *Role) {
	taken := map[string]string{}
	for _, mount := range job.MountsOf(*role) {
		taken[mount.MountPath] = "a mount of the volume " + mount.Volume
	}
	for i, mount := range role.VolumeMounts {
		at, clean := at.Index(i), path.Clean(mount.MountPath)
		v.mountedPodVolume(at.Child("name"), mount.Name, job.Volumes)
		v.mountPath(at.Child("mountPath"), mount.MountPath, taken[clean])
		taken[clean] = fmt.Sprintf("volumeMounts[%d]", i)
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			v.forbidden(at.Child("subPathExpr"), "subPath is given already; write either subPath or subPathExpr")
		}
		for _, sub := range []struct{ name, path string }{{"subPath", mount.SubPath}, {"subPathExpr", mount.SubPathExpr}} {
			if path.IsAbs(sub.path) || slices.Contains(strings.Split(sub.path, "/"), "..") {
				v.invalid(at.Child(sub.name), sub.path, "must be a path below the volume's root, without a leading / and without ..")
			}
		}
	}
}

func (v *validator) mountedPodVolume(at *field.Path, name string, volumes []corev1.Volume) {
	names := make([]string, len(volumes))
	for i := range volumes {
		if names[i] = volumes[i].Name; name != "" && name == names[i] {
			return
		}
	}
	switch {
	case len(names) == 0:
		v.invalid(at, name, "must be one of the job's volumes, and it has none; write one in volumes, or mount a volume of the stack by mounts")
	case name == "":
		v.required(at, "write one of the job's volumes: %s", or(names))
	default:
		v.invalid(at, name, "must be one of the job's volumes: %s", or(names))
	}
}

// mountPath checks a path that Kubernetes takes as it is, with a slash at its end
// for example. Shared memory may be the job's own: it takes the place of ours.
func (v *validator) mountPath(at *field.Path, mountPath, taken string) {
	clean := path.Clean(mountPath)
	switch {
	case mountPath == "":
		v.required(at, "write an absolute path, like /data")
	case !path.IsAbs(mountPath):
		v.invalid(at, mountPath, "must be absolute; write %s", path.Join("/", mountPath))
	case clean == "/":
		v.invalid(at, mountPath, "must be a directory below the root, like /data")
	case strings.Contains(mountPath, ":"):
		v.invalid(at, mountPath, "must not contain a colon; rename the directory")
	case takenPaths[clean] != "" && clean != sharedMemory:
		v.invalid(at, mountPath, "is %s; choose another path", takenPaths[clean])
	case taken != "":
		v.duplicate(at, mountPath, "is that of %s; each volume has a path of its own", taken)
	}
}

// MountsHostPaths reports whether a job has directories of its nodes among its
// volumes.
func (s *Stack) MountsHostPaths() bool {
	return slices.ContainsFunc(s.Jobs, func(j Job) bool { return j.MountsHostPaths() })
}

// claimMounts are the mounts of the stack's volumes by a role: its own, and those
// of the job's volumes over the claims of the stack's.
func (s *Stack) claimMounts(job *Job, role *Role) []Mount {
	mounts := job.MountsOf(*role)
	for _, volume := range job.Volumes {
		claim := volume.PersistentVolumeClaim
		if claim == nil {
			continue
		}
		for _, of := range s.Storage {
			for _, mount := range role.VolumeMounts {
				if of.Claim == claim.ClaimName && mount.Name == volume.Name {
					mounts = append(mounts, Mount{Volume: of.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly || claim.ReadOnly})
				}
			}
		}
	}
	return mounts
}

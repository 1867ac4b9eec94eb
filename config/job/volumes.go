package job

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

	"persia/config/check"
)

// takenVolumes are the names of volumes that the program gives to pods itself.
var takenVolumes = regexp.MustCompile(`^(claim-\d+|launch|state|shared-memory)$`)

// checkVolumes checks the volumes that a job's pods have, whatever their kind: what
// is inside a source is for Kubernetes to check.
func checkVolumes(p *check.Problems, at *field.Path, volumes []corev1.Volume) {
	names := make([]string, len(volumes))
	for i, volume := range volumes {
		at := at.Index(i)
		names[i] = volume.Name
		p.Name(at.Child("name"), volume.Name, validation.IsDNS1123Label)
		if takenVolumes.MatchString(volume.Name) {
			p.Invalid(at.Child("name"), volume.Name, "is that of a volume which every job has; choose another name")
		}
		checkOneSource(p, at, volume)
	}
	check.Unique(names, func(i, first int) {
		p.Duplicate(at.Index(i).Child("name"), names[i], "is that of volumes[%d]; each volume has a name of its own", first)
	})
}

// checkOneSource checks that a volume has one source.
func checkOneSource(p *check.Problems, at *field.Path, volume corev1.Volume) {
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
		p.Required(at, "write where the volume comes from, like persistentVolumeClaim: {claimName: data}")
	case len(given) > 1:
		p.Forbidden(at, "has %d sources, %s; write one of them", len(given), check.And(given))
	}
	if claim := volume.PersistentVolumeClaim; claim != nil {
		p.Name(at.Child("persistentVolumeClaim", "claimName"), claim.ClaimName, validation.IsDNS1123Subdomain)
	}
	if host := volume.HostPath; host != nil && !path.IsAbs(host.Path) {
		p.Invalid(at.Child("hostPath", "path"), host.Path, "must be absolute; write %s", path.Join("/", host.Path))
	}
}

// checkVolumeMounts checks where a role mounts the volumes of its job.
func checkVolumeMounts(p *check.Problems, at *field.Path, job *Job, role *Role) {
	taken := map[string]string{}
	for _, mount := range job.MountsOf(*role) {
		taken[mount.MountPath] = "a mount of the volume " + mount.Volume
	}
	for i, mount := range role.VolumeMounts {
		at, clean := at.Index(i), path.Clean(mount.MountPath)
		checkMountedVolume(p, at.Child("name"), mount.Name, job.Volumes)
		checkMountPath(p, at.Child("mountPath"), mount.MountPath, taken[clean])
		taken[clean] = fmt.Sprintf("volumeMounts[%d]", i)
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			p.Forbidden(at.Child("subPathExpr"), "subPath is given already; write either subPath or subPathExpr")
		}
		for _, sub := range []struct{ name, path string }{{"subPath", mount.SubPath}, {"subPathExpr", mount.SubPathExpr}} {
			if path.IsAbs(sub.path) || slices.Contains(strings.Split(sub.path, "/"), "..") {
				p.Invalid(at.Child(sub.name), sub.path, "must be a path below the volume's root, without a leading / and without ..")
			}
		}
	}
}

func checkMountedVolume(p *check.Problems, at *field.Path, name string, volumes []corev1.Volume) {
	names := make([]string, len(volumes))
	for i := range volumes {
		if names[i] = volumes[i].Name; name != "" && name == names[i] {
			return
		}
	}
	switch {
	case len(names) == 0:
		p.Invalid(at, name, "must be one of the job's volumes, and it has none; write one in volumes, or mount a volume of the stack by mounts")
	case name == "":
		p.Required(at, "write one of the job's volumes: %s", check.Or(names))
	default:
		p.Invalid(at, name, "must be one of the job's volumes: %s", check.Or(names))
	}
}

// checkMountPath checks a path that Kubernetes takes as it is, with a slash at its end
// for example. Shared memory may be the job's own: it takes the place of ours.
func checkMountPath(p *check.Problems, at *field.Path, mountPath, taken string) {
	clean := path.Clean(mountPath)
	switch {
	case mountPath == "":
		p.Required(at, "write an absolute path, like /data")
	case !path.IsAbs(mountPath):
		p.Invalid(at, mountPath, "must be absolute; write %s", path.Join("/", mountPath))
	case clean == "/":
		p.Invalid(at, mountPath, "must be a directory below the root, like /data")
	case strings.Contains(mountPath, ":"):
		p.Invalid(at, mountPath, "must not contain a colon; rename the directory")
	case takenPaths[clean] != "" && clean != sharedMemory:
		p.Invalid(at, mountPath, "is %s; choose another path", takenPaths[clean])
	case taken != "":
		p.Duplicate(at, mountPath, "is that of %s; each volume has a path of its own", taken)
	}
}

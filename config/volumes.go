package config

import (
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// bucketForm is the form of a bucket's name (Cloud Storage, "Bucket naming
// requirements").
var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$`)

func (v *validator) volumes() {
	path, volumes := field.NewPath(volumesKey), v.stack.Volumes
	names, claims, sources := make([]string, len(volumes)), make([]string, len(volumes)), make([]string, len(volumes))
	for i, volume := range volumes {
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

func (v *validator) volume(path *field.Path, volume Volume) {
	v.name(path.Child("name"), volume.Name, validation.IsDNS1123Label)
	if volume.Claim != "" {
		v.name(path.Child("claim"), volume.Claim, validation.IsDNS1123Subdomain)
	}
	switch size, err := parseQuantity(volume.Size); {
	case volume.Size == "":
		v.required(path.Child("size"), "write a quantity like 10Gi")
	case err != nil:
		v.invalid(path.Child("size"), volume.Size, "%s", err)
	case size.Sign() <= 0:
		v.invalid(path.Child("size"), volume.Size, "must be more than 0, like 10Gi")
	}
	v.accessModes(path.Child("accessModes"), volume.AccessModes)
	v.source(path, volume)
	v.reachable(path, volume)
}

func (v *validator) accessModes(path *field.Path, modes []corev1.PersistentVolumeAccessMode) {
	for i, mode := range modes {
		oneOf(v, path.Index(i), mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany)
	}
	unique(modes, func(i, _ int) {
		v.duplicate(path.Index(i), modes[i], "write each access mode once")
	})
}

func (v *validator) source(path *field.Path, volume Volume) {
	switch {
	case volume.HostPath != nil && volume.GCSFuse != nil:
		v.forbidden(path.Child("gcsFuse"), "hostPath is given already; write exactly one of hostPath and gcsFuse")
	case volume.HostPath != nil:
		v.directory(path.Child("hostPath", "path"), volume.HostPath.Path)
	case volume.GCSFuse != nil:
		v.bucket(path.Child("gcsFuse", "bucket"), volume.GCSFuse.Bucket)
	default:
		v.required(path.Child("gcsFuse"), "write where the data is: gcsFuse with a bucket, or hostPath for a stack of one node")
	}
}

// directory checks the path of a directory other than the root.
func (v *validator) directory(at *field.Path, directory string) {
	switch {
	case directory == "":
		v.required(at, "write an absolute path, like /checkpoints")
	case !path.IsAbs(directory):
		v.invalid(at, directory, "must be absolute; write %s", path.Join("/", directory))
	case path.Clean(directory) != directory:
		v.invalid(at, directory, "must be written plainly; write %s", path.Clean(directory))
	case directory == "/":
		v.invalid(at, directory, "must be a directory below the root, like /checkpoints")
	case strings.Contains(directory, ":"):
		v.invalid(at, directory, "must not contain a colon; rename the directory")
	}
}

func (v *validator) bucket(path *field.Path, bucket string) {
	switch bare, prefixed := strings.CutPrefix(bucket, "gs://"); {
	case bucket == "":
		v.required(path, "write the name of an existing bucket")
	case prefixed:
		v.invalid(path, bucket, "must be the name alone; write %s", strings.TrimSuffix(bare, "/"))
	case !bucketForm.MatchString(bucket):
		v.invalid(path, bucket, "must be the name of a bucket: 3 to 63 lower case letters, digits, hyphens, underscores and dots, with a letter or digit at both ends")
	}
}

// reachable checks that a volume which only one node can mount is not mounted
// from more than one.
func (v *validator) reachable(path *field.Path, volume Volume) {
	pools, nodes := v.stack.mountedFrom(volume.Name)
	if nodes < 2 {
		return
	}
	from := strings.Join(pools, ", ")
	switch {
	case volume.HostPath != nil:
		v.invalid(path.Child("hostPath"), volume.HostPath.Path, "is a directory of each node by itself, and the roles that mount the volume stand on up to %d nodes (pools %s); use gcsFuse, or put these roles on one pool of one node", nodes, from)
	case !slices.ContainsFunc(volume.AccessModes, mountsOnMany):
		v.invalid(path.Child("accessModes"), volume.AccessModes, "lets one node mount the volume, and the roles that mount it stand on up to %d nodes (pools %s); write [ReadWriteMany], or put these roles on one pool of one node", nodes, from)
	}
}

func mountsOnMany(mode corev1.PersistentVolumeAccessMode) bool {
	return mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany
}

// mountedFrom lists the pools whose nodes mount a volume, sorted, and the number
// of nodes that they have at most.
func (s *Stack) mountedFrom(volume string) (pools []string, nodes int) {
	for i := range s.Jobs {
		job := &s.Jobs[i]
		if !slices.ContainsFunc(job.Mounts, func(m Mount) bool { return m.Volume == volume }) {
			continue
		}
		for _, r := range job.roles() {
			if p, ok := s.pool(r.NodePool); ok && !slices.Contains(pools, p.Name) {
				pools, nodes = append(pools, p.Name), nodes+p.mostNodes()
			}
		}
	}
	slices.Sort(pools)
	return pools, nodes
}

// source tells what a volume is over, to compare it with others.
func (v Volume) source() string {
	switch {
	case v.HostPath != nil && v.HostPath.Path != "":
		return "hostPath " + path.Clean(v.HostPath.Path)
	case v.GCSFuse != nil && v.GCSFuse.Bucket != "":
		return "gcsFuse " + v.GCSFuse.Bucket
	}
	return ""
}

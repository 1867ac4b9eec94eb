package jobspec

import (
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// The directories of a replica's containers that the program mounts itself.
const (
	// SharedMemory is where the processes of a replica exchange data.
	SharedMemory = "/dev/shm"
	// LaunchDirectory has the script that replicas start with.
	LaunchDirectory = "/opt/persia"
	// StateDirectory is where a replica keeps its state: whether it is idle, its progress, and,
	// in a job without a volume, what the coordinator remembers.
	StateDirectory = "/var/lib/persia"
)

// takenPaths are where the program itself mounts something. Nothing can be mounted
// there, below, or over them.
var takenPaths = map[string]string{
	SharedMemory:                     "shared memory",
	LaunchDirectory:                  "where the start script of the replicas is",
	StateDirectory:                   "where a replica keeps its state",
	"/var/run/secrets/kubernetes.io": "where Kubernetes puts the token of a service account",
	gcp.ContainerDriverPath:          "where GKE puts the NVIDIA driver",
}

// imagePaths hold the programs and libraries of an image, which a mount would hide.
// What lies below them can be mounted.
var imagePaths = []string{"/bin", "/etc", "/lib", "/lib64", "/opt", "/sbin", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/var"}

// kernelPaths are file systems of the kernel.
var kernelPaths = []string{"/dev", "/proc", "/sys"}

// taken says what is where a volume is to be mounted, if it cannot be: the path is
// absolute. A volume of the job's own may be its shared memory.
func taken(mountPath string, ownSharedMemory bool) string {
	mountPath = path.Clean(mountPath)
	for _, directory := range slices.Sorted(maps.Keys(takenPaths)) {
		switch {
		case directory == SharedMemory && mountPath == SharedMemory && ownSharedMemory:
			return ""
		case mountPath == directory:
			return "is " + takenPaths[directory]
		case strings.HasPrefix(mountPath, directory+"/"):
			return "is below " + directory + ", " + takenPaths[directory]
		case strings.HasPrefix(directory, mountPath+"/"):
			return "would hide " + directory + ", " + takenPaths[directory]
		}
	}
	for _, directory := range kernelPaths {
		if mountPath == directory || strings.HasPrefix(mountPath, directory+"/") {
			return "is in " + directory + ", which the kernel keeps"
		}
	}
	if slices.Contains(imagePaths, mountPath) {
		return "would hide what the image has there"
	}
	return ""
}

// mounts checks the mounts of a job, or those of a role, which come to the job's.
func (c *checker) mounts(list *field.Path, mounts, ofJob []Mount) {
	paths := make([]string, len(mounts))
	for i, m := range mounts {
		at := list.Index(i)
		paths[i] = m.MountPath
		c.mountedVolume(at.Child("volume"), m.Volume)
		check.Directory(c.Problems, at.Child("mountPath"), m.MountPath)
		if there := taken(m.MountPath, false); there != "" {
			c.Invalid(at.Child("mountPath"), m.MountPath, "%s; choose another path, like /data", there)
		}
		if slices.ContainsFunc(ofJob, func(other Mount) bool { return other.MountPath == m.MountPath }) {
			c.Duplicate(at.Child("mountPath"), m.MountPath, "is already used by a mount of the job, which every role has; give each volume its own path")
		}
	}
	check.Unique(paths, func(i, first int) {
		c.Duplicate(list.Index(i).Child("mountPath"), paths[i], "is already used by mounts[%d]; give each volume its own path", first)
	})
}

func (c *checker) mountedVolume(path *field.Path, name string) {
	if _, ok := c.context.volume(name); ok && name != "" || c.context.VolumesUnknown {
		return
	}
	if len(c.context.Volumes) == 0 {
		c.Invalid(path, name, "must be a volume, but the stack has none; add one in %s", c.context.StorageKey)
		return
	}
	c.Invalid(path, name, "must be one of the stack's volumes: %s", check.Or(c.context.volumeNames()))
}

// ClaimMounts are the mounts of the stack's volumes by a role: its own and the job's,
// and those of the job's Volumes over the claims of the stack's.
func (j *Job) ClaimMounts(role *Role, volumes []Volume) []Mount {
	mounts := j.MountsOf(*role)
	for _, volume := range j.Volumes {
		claim := volume.PersistentVolumeClaim
		if claim == nil {
			continue
		}
		for _, of := range volumes {
			for _, mount := range role.VolumeMounts {
				if of.Claim == claim.ClaimName && mount.Name == volume.Name {
					mounts = append(mounts, Mount{Volume: of.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly || claim.ReadOnly})
				}
			}
		}
	}
	return mounts
}

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

// The directories that the program mounts in the containers of a replica.
const (
	// SharedMemory is where the processes of a replica exchange data.
	SharedMemory = "/dev/shm"
	// LaunchDirectory contains the start script of replicas.
	LaunchDirectory = "/opt/persia"
	// StateDirectory contains the state of a replica: whether it is idle, its progress, and,
	// in a job without a volume, the state of the coordinator.
	StateDirectory = "/var/lib/persia"
)

// takenPaths are directories that the program, Kubernetes or GKE mounts. A job cannot mount
// anything at, below, or above them.
var takenPaths = map[string]string{
	SharedMemory:                     "shared memory",
	LaunchDirectory:                  "where the start script of the replicas is",
	StateDirectory:                   "where a replica keeps its state",
	"/var/run/secrets/kubernetes.io": "where Kubernetes puts the token of a service account",
	gcp.ContainerDriverPath:          "where GKE puts the NVIDIA driver",
}

// imagePaths contain the programs and libraries of an image, which a mount would hide. A job
// can mount directories below them.
var imagePaths = []string{"/bin", "/etc", "/lib", "/lib64", "/opt", "/sbin", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/var"}

// kernelPaths are mount points of the kernel's file systems.
var kernelPaths = []string{"/dev", "/proc", "/sys"}

// taken explains why a job cannot mount a volume at an absolute path, or returns "" if it
// can. With ownSharedMemory, the volume may replace the program's shared memory.
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

// mounts checks the mounts of a job, or of a role that also has the job's mounts.
func (c *checker) mounts(list *field.Path, mounts, ofJob []Mount) {
	for i, m := range mounts {
		at := list.Index(i)
		c.mountedVolume(at.Child("volume"), m.Volume)
		check.Directory(c.Problems, at.Child("mountPath"), m.MountPath)
		if there := taken(m.MountPath, false); there != "" {
			c.Invalid(at.Child("mountPath"), m.MountPath, "%s; choose another path, like /data", there)
		}
		if slices.ContainsFunc(ofJob, func(other Mount) bool { return other.MountPath == m.MountPath }) {
			c.Duplicate(at.Child("mountPath"), m.MountPath, "is already used by a mount of the job, which every role has; give each volume its own path")
		}
	}
	check.UniqueField(c.Problems, list, "mountPath", mounts, func(m Mount) string { return m.MountPath }, "is already used by mounts[%d]; give each volume its own path")
}

func (c *checker) mountedVolume(path *field.Path, name string) {
	if _, ok := c.context.volume(name); ok && name != "" || c.context.VolumesUnknown {
		return
	}
	if len(c.context.Volumes) == 0 {
		c.Invalid(path, name, "must be a volume, but the stack has none; add one in %s", c.context.StorageKey)
		return
	}
	c.Invalid(path, name, "must be one of the stack's volumes: %s", check.Or(check.Words(c.context.Volumes, func(v Volume) string { return v.Name })))
}

// ClaimMounts returns where a role mounts volumes of the stack: its own mounts, the job's, and
// the mounts of job Volumes that use the claim of a volume of the stack.
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

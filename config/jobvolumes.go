package config

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// jobChecker checks the jobs of a stack.
type jobChecker struct {
	*input.Problems
	stack *Stack
}

// takenVolumes matches the names of volumes that the program adds to pods.
var takenVolumes = regexp.MustCompile(`^(claim-\d+|launch|state|shared-memory)$`)

// checkVolumes checks the Kubernetes volumes of a job. The API server checks the fields of their sources.
func checkVolumes(p *input.Problems, at *field.Path, volumes []corev1.Volume) {
	for i, volume := range volumes {
		at := at.Index(i)
		input.Form(p, at.Child("name"), "label", volume.Name)
		if takenVolumes.MatchString(volume.Name) {
			p.Invalid(at.Child("name"), volume.Name, "is the name of a volume that every job has; choose another name")
		}
		if volume.VolumeSource == (corev1.VolumeSource{}) { // Kubernetes would create an empty directory
			p.Required(at, "write a source, like persistentVolumeClaim: {claimName: data}")
		}
		if volume.HostPath != nil {
			directory, at := volume.HostPath.Path, at.Child("hostPath", "path")
			if !path.IsAbs(directory) || slices.Contains(strings.Split(directory, "/"), "..") {
				p.Instead(at, directory, path.Join("/", directory), "must be absolute and without ..")
			} else {
				checkSystemDirectory(p, at, directory)
			}
		}
		if volume.CSI != nil && volume.CSI.Driver == gcp.DriverGCSFuse {
			p.Invalid(at.Child("csi", "driver"), volume.CSI.Driver, "mounts a bucket only in pods with an annotation, which pods "+
				"get for a volume with gcsFuse of %s; write the bucket there, and mount that volume", storageKey)
		}
	}
}

// checkMounts checks the mounts of a job, or of a role at a path, which inherits mounts from its job.
func (c *jobChecker) checkMounts(at *field.Path, j *Job, own, inherited []Mount, volumeMounts []corev1.VolumeMount) {
	used := map[string]string{} // what is mounted, by path
	for _, m := range inherited {
		used[m.MountPath] = "the job's mount of " + m.Volume
	}
	take := func(at *field.Path, mountPath, what string, ownSharedMemory bool) {
		clean := path.Clean(mountPath)
		there := taken(clean)
		switch {
		case mountPath == "":
		case used[clean] != "":
			c.Duplicate(at, mountPath, "is already used by %s; give each volume its own path", used[clean])
		case there != "" && !(ownSharedMemory && clean == SharedMemory):
			c.Invalid(at, mountPath, "overlaps with %s; choose another path, like /data", there)
		}
		used[clean] = what
	}
	for i, m := range own {
		at := at.Child("mounts").Index(i)
		if c.Decoded(field.NewPath(storageKey)) {
			c.mountedVolume(at.Child("volume"), m.Volume, storageKey, input.Words(c.stack.Storage, func(v Volume) string { return v.Name }))
		}
		take(at.Child("mountPath"), m.MountPath, "the mount of "+m.Volume, false)
	}
	for i, m := range volumeMounts {
		at := at.Child("volumeMounts").Index(i)
		c.mountedVolume(at.Child("name"), m.Name, "volumes", input.Words(j.Volumes, func(v corev1.Volume) string { return v.Name }))
		// Kubernetes accepts paths that are not clean, for example with a trailing slash.
		clean := m.MountPath
		if clean != "" {
			clean = path.Clean(clean)
		}
		input.Form(c.Problems, at.Child("mountPath"), "directory", clean)
		take(at.Child("mountPath"), clean, "the mount of "+m.Name, true)
	}
}

// mountedVolume checks the name of a volume that is in a list of the stack file.
func (c *jobChecker) mountedVolume(at *field.Path, name, list string, names []string) {
	switch {
	case len(names) == 0:
		c.Invalid(at, name, "must be a volume of %s, which has none; add it there", list)
	case name == "" || !slices.Contains(names, name):
		c.Choose(c.Invalid(at, name, "must be a volume of %s", list), at, names)
	}
}

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

// reservedPaths says what is in the directories that no volume of a job may cover or be in.
var reservedPaths = map[string]string{
	SharedMemory:                     "shared memory",
	LaunchDirectory:                  "where the start script of the replicas is",
	StateDirectory:                   "where a replica keeps its state",
	"/var/run/secrets/kubernetes.io": "where Kubernetes puts the token of a service account",
	gcp.ContainerDriverPath:          "where GKE puts the NVIDIA driver",
	"/dev":                           "which the kernel keeps",
	"/proc":                          "which the kernel keeps",
	"/sys":                           "which the kernel keeps",
}

// imagePaths contain the programs and libraries of an image, which a mount would hide. A job
// can mount directories below them.
var imagePaths = []string{
	"/bin", "/etc", "/lib", "/lib64", "/opt", "/sbin", "/usr", "/usr/bin", "/usr/lib",
	"/usr/local", "/usr/local/bin", "/usr/local/lib", "/var",
}

// taken says what is at a clean path where a job cannot mount a volume, or returns "".
func taken(mountPath string) string {
	for _, directory := range slices.Backward(slices.Sorted(maps.Keys(reservedPaths))) { // the longest first
		what := reservedPaths[directory]
		if strings.HasPrefix(mountPath+"/", directory+"/") || strings.HasPrefix(directory, mountPath+"/") {
			return directory + ", " + what
		}
	}
	if slices.Contains(imagePaths, mountPath) {
		return "the programs of the image"
	}
	return ""
}

// JobsWrite reports whether a job can write to a volume.
func (s *Stack) JobsWrite(volume string) bool { return !s.usersOf(volume).ReadOnly }

// usersOf returns the node pools of the roles that mount a volume.
func (s *Stack) usersOf(name string) volumeUsers {
	users := volumeUsers{ReadOnly: true}
	mounted := map[string]bool{}
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			for _, m := range role.mounted {
				if m.stored != nil && m.stored.Name == name {
					for _, pool := range poolsIn(role.NodePool) {
						mounted[pool] = true
					}
					users.ReadOnly = users.ReadOnly && m.readOnly
				}
			}
		}
	}
	for _, pool := range s.Pools() {
		if mounted[pool.Name] {
			users.Pools = append(users.Pools, pool)
		}
	}
	slices.SortFunc(users.Pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return users
}

// MountsVolume reports whether a role of the job mounts a volume of the stack.
func (j *Job) MountsVolume(name string) bool {
	return slices.ContainsFunc(j.Roles(), func(r NamedRole) bool {
		return slices.ContainsFunc(r.mounted, func(m mounted) bool { return m.stored != nil && m.stored.Name == name })
	})
}

// GCSFuseSidecar returns the requests of the container that GKE adds to the pods of a role
// that mounts buckets, and whether the role mounts one.
func (j *Job) GCSFuseSidecar(kind Kind) (most capacity.Resources, found bool) {
	caches := int64(0)
	for _, m := range kind.Of(j).mounted {
		v := m.stored
		if v == nil || !v.MountedBySidecar() {
			continue
		}
		asks := v.GCSFuse.Sidecar.Requests()
		caches += v.fileCacheBytes()
		most, found = capacity.Resources{
			MilliCPU:       max(most.MilliCPU, asks.MilliCPU),
			MemoryBytes:    max(most.MemoryBytes, asks.MemoryBytes),
			EphemeralBytes: max(most.EphemeralBytes, asks.EphemeralBytes),
		}, true
	}
	most.EphemeralBytes += caches
	return most, found
}

package config

import (
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// upstreamDirectory contains PERSIA's examples in upstream's images (Dockerfile in
// PersiaML/PERSIA).
const upstreamDirectory = "/home/PERSIA"

// jobFile is a file that roles of a job read.
type jobFile struct {
	name, path string
	script     bool // a Python script, or else a YAML file
	kinds      []Kind
}

func (env PersiaEnv) files() []jobFile {
	return []jobFile{
		{"PERSIA_GLOBAL_CONFIG", env.GlobalConfig, false, Kinds()},
		{"PERSIA_EMBEDDING_CONFIG", env.EmbeddingConfig, false, Kinds()},
		{"PERSIA_NN_WORKER_ENTRY", env.NNWorkerEntry, true, []Kind{KindNNWorker}},
		{"PERSIA_DATALOADER_ENTRY", env.DataloaderEntry, true, []Kind{KindDataloader}},
	}
}

// checkFiles checks the files of a job and that the roles have them: in the image, or on a
// volume that the role mounts.
func (c *jobChecker) checkFiles(at *field.Path, j *Job) {
	for _, f := range j.PersiaEnv.files() {
		at := at.Child(f.name)
		switch {
		case f.path == "":
			c.Required(at, "write the absolute path of the file in the containers, like /workspace/config.yml")
			continue
		case strings.TrimSpace(f.path) != f.path:
			c.Invalid(at, f.path, "has spaces at an end, so no file is there; write %s", strings.TrimSpace(f.path))
			continue
		case strings.Contains(f.path, "${"):
			c.Invalid(at, f.path, "is a path as it is, because Kubernetes expands only $(NAME); write parentheses")
			continue
		case !path.IsAbs(f.path):
			c.Invalid(at, f.path, "must be the absolute path of the file in the containers, like %s", path.Join("/workspace", f.path))
			continue
		case strings.HasSuffix(f.path, "/") || slices.ContainsFunc(j.Mounts, func(m Mount) bool { return m.MountPath == path.Clean(f.path) }):
			c.Invalid(at, f.path, "is a directory; write the path of the file, like %s", path.Join("/", f.path, "config.yml"))
			continue
		}
		c.warnOfMissingFile(at, j, f)
	}
}

// warnOfMissingFile warns of roles that may not have a file.
func (c *jobChecker) warnOfMissingFile(at *field.Path, j *Job, f jobFile) {
	within := func(directory string) bool { return strings.HasPrefix(path.Clean(f.path), path.Clean(directory)+"/") }
	has := func(role *Role) bool {
		for _, m := range j.MountsOf(*role) {
			if within(m.MountPath) {
				return true
			}
		}
		for _, m := range role.VolumeMounts {
			if within(m.MountPath) || path.Clean(m.MountPath) == path.Clean(f.path) {
				return true
			}
		}
		return false
	}
	mounted := slices.ContainsFunc(j.Roles(), func(r NamedRole) bool { return has(r.Role) })
	var lack []string
	for _, kind := range f.kinds {
		role := kind.Of(j)
		if !has(role) && !within(upstreamDirectory) && (mounted || role.Image == "") {
			lack = append(lack, kind.Field)
		}
	}
	switch {
	case len(lack) == 0 || strings.Contains(f.path, "$("):
	case mounted:
		c.Warn(at, "%s is on a volume that %s does not mount; add it to mounts of that role, or of the job", f.path, input.And(lack))
	default:
		c.Warn(at, "%s is below no mount of %s, and upstream's images have only the examples below %s; write a path below a mountPath, or an image with the file", f.path, input.And(lack), upstreamDirectory)
	}
}

// outlives reports whether a pod can write to a volume that may outlive the pod. Which drivers
// keep an inline volume is not known. Claims of ephemeral volumes go with the pod.
func outlives(v corev1.Volume) bool {
	switch {
	case v.PersistentVolumeClaim != nil:
		return !v.PersistentVolumeClaim.ReadOnly
	case v.NFS != nil:
		return !v.NFS.ReadOnly
	case v.CSI != nil:
		return v.CSI.ReadOnly == nil || !*v.CSI.ReadOnly
	case v.GCEPersistentDisk != nil:
		return !v.GCEPersistentDisk.ReadOnly
	}
	return v.HostPath != nil
}

// ofEachNode returns the first hostPath volume that nn-workers and embedding parameter servers
// both can write, or "".
func (j *Job) ofEachNode() string {
	writes := func(role *Role, name string) bool {
		return slices.ContainsFunc(role.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name && !m.ReadOnly })
	}
	for _, v := range j.Volumes {
		if v.HostPath != nil && writes(&j.NNWorker.Role, v.Name) && writes(&j.EmbeddingParameterServer, v.Name) {
			return v.Name
		}
	}
	return ""
}

// warnOfCheckpoints warns if nn-workers and embedding parameter servers have no directory in
// which both can write a checkpoint that outlives them.
func (c *jobChecker) warnOfCheckpoints(j *Job) {
	type directory struct{ volume, path string }
	writable := func(role *Role) []directory {
		var all []directory
		for _, m := range j.MountsOf(*role) {
			if !m.ReadOnly {
				all = append(all, directory{m.Volume, m.MountPath})
			}
		}
		for _, m := range role.VolumeMounts {
			for _, v := range j.Volumes {
				if m.Name == v.Name && !m.ReadOnly && outlives(v) {
					all = append(all, directory{"volumes/" + v.Name, path.Clean(m.MountPath)})
				}
			}
		}
		return all
	}
	workers, servers := writable(&j.NNWorker.Role), writable(&j.EmbeddingParameterServer)
	if !slices.ContainsFunc(workers, func(d directory) bool { return slices.Contains(servers, d) }) {
		c.Warn(j.at.Child("mounts"), "%s and %s have no volume in common that both mount at one path and can write, so the job keeps no checkpoint and begins anew when it loses a replica; add a mount without readOnly to the job",
			KindNNWorker.Field, KindEmbeddingParameterServer.Field)
	}
	if name := j.ofEachNode(); name != "" && len(j.Mounts) == 0 && !c.stack.existing() && !c.stack.hasOneNode() {
		c.Warn(j.at.Child("volumes").Key(name), "is another directory on each node, so a replica that restarts on another node does not find its checkpoint, and a new node has none; use mounts with a volume of %s", storageKey)
	}
	for _, env := range j.envs() {
		for i, e := range env.list {
			if e.Name != checkpointDirectory || e.Value == "" || strings.Contains(e.Value, "$(") {
				continue
			}
			below := func(d directory) bool {
				return path.Clean(e.Value) == d.path || strings.HasPrefix(path.Clean(e.Value), d.path+"/")
			}
			if !slices.ContainsFunc(workers, below) || !slices.ContainsFunc(servers, below) {
				c.Warn(env.at.Index(i).Child("value"), "%s is below no volume that both %s and %s can write, so checkpoints are lost with the containers; write a path below a mountPath", e.Value, KindNNWorker.Field, KindEmbeddingParameterServer.Field)
			}
		}
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
func (c *jobChecker) mounts(list *field.Path, mounts, ofJob []Mount) {
	for i, m := range mounts {
		at := list.Index(i)
		c.mountedVolume(at.Child("volume"), m.Volume)
		if there := taken(m.MountPath, false); there != "" {
			c.Invalid(at.Child("mountPath"), m.MountPath, "%s; choose another path, like /data", there)
		}
		if slices.ContainsFunc(ofJob, func(other Mount) bool { return other.MountPath == m.MountPath }) {
			c.Duplicate(at.Child("mountPath"), m.MountPath, "is already used by a mount of the job, which every role has; give each volume its own path")
		}
	}
	input.UniqueField(c.Problems, list, "mountPath", mounts, func(m Mount) string { return m.MountPath }, "is already used by mounts[%d]; give each volume its own path")
}

func (c *jobChecker) mountedVolume(path *field.Path, name string) {
	if name != "" && c.stack.volume(name) != nil || !c.Decoded(field.NewPath(storageKey)) {
		return
	}
	if len(c.stack.Storage) == 0 {
		c.Invalid(path, name, "must be a volume, but the stack has none; add one in %s", storageKey)
		return
	}
	c.Invalid(path, name, "must be one of the stack's volumes: %s", input.Or(input.Words(c.stack.Storage, func(v Volume) string { return v.Name })))
}

// resolveMounts finds the volumes of the stack that roles mount: by their own mounts, the job's, and
// by Volumes of the job that use the claim of a volume of the stack.
func (s *Stack) resolveMounts() {
	for i := range s.Jobs {
		job := &s.Jobs[i]
		for _, role := range job.Roles() {
			for _, m := range job.MountsOf(*role.Role) {
				if v := s.volume(m.Volume); v != nil {
					role.stored = append(role.stored, storedMount{v, m.ReadOnly})
				}
			}
			for _, m := range role.VolumeMounts {
				for _, volume := range job.Volumes {
					claim := volume.PersistentVolumeClaim
					if claim == nil || volume.Name != m.Name {
						continue
					}
					for k := range s.Storage {
						if s.Storage[k].Claim == claim.ClaimName {
							role.stored = append(role.stored, storedMount{&s.Storage[k], m.ReadOnly || claim.ReadOnly})
						}
					}
				}
			}
		}
	}
}

// envList is a list of variables with its path.
type envList struct {
	at    *field.Path
	list  []corev1.EnvVar
	kinds []Kind // the roles that have them
}

// envs returns the variables of the job and of each role.
func (j *Job) envs() []envList {
	lists := []envList{{j.at.Child("env"), j.Env, Kinds()}}
	for _, role := range j.Roles() {
		lists = append(lists, envList{j.at.Child(role.Field, "env"), role.Env, []Kind{role.Kind}})
	}
	return lists
}

// checkpointDirectory is the variable with the directory of a job's checkpoints.
const checkpointDirectory = "PERSIA_CKPT_DIR"

// warnOfVariables warns of variables that lead a job to the NATS of another one.
func (c *jobChecker) warnOfVariables(j *Job) {
	for _, env := range j.envs() {
		for i, e := range env.list {
			if slices.Contains(natsVariables, e.Name) {
				c.Warn(env.at.Index(i).Child("name"), "%s leads the job to another NATS than its own, and two jobs on one NATS train on each other's data; remove it", e.Name)
			} else if address := closed(e.Value, j.Name); address != "" {
				c.Warn(env.at.Index(i).Child("value"), "%s is closed to the job, whose network policy opens DNS, port 443, and its own NATS; allow the port with a policy of your own for pods with the label persia_job=%s", address, j.Name)
			}
		}
	}
}

var (
	// hostPort matches an address in a list of addresses or of URLs.
	hostPort = regexp.MustCompile(`^(?:([a-z][a-z0-9+.-]*)://)?(?:[^@/]*@)?([a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*)(?::([0-9]+))?(?:/.*)?$`)
	// wellKnownPorts are the ports of schemes in URLs without a port.
	wellKnownPorts = map[string]string{
		"amqp": "5672", "ftp": "21", "hdfs": "8020", "http": "80", "kafka": "9092", "ldap": "389", "mongodb": "27017", "mysql": "3306",
		"postgres": "5432", "postgresql": "5432", "redis": "6379", "ssh": "22", "thrift": "9083", "zookeeper": "2181",
	}
)

// closed returns the first address in the value of a variable that the network policy of a job closes,
// or "". An address without a scheme has a dot and a port.
func closed(value, job string) string {
	for text := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(",; ", r) }) {
		parts := hostPort.FindStringSubmatch(text)
		if parts == nil {
			continue
		}
		scheme, host, port := parts[1], parts[2], parts[3]
		address, err := netip.ParseAddr(host)
		own := host == "localhost" || err == nil && address.IsLoopback() || strings.HasPrefix(host, job+"-")
		if port == "" {
			port = wellKnownPorts[scheme]
		}
		named := err == nil || strings.Contains(host, ".") && strings.ContainsFunc(host, unicode.IsLetter)
		if (scheme != "" || named) && port != "" && port != "443" && port != "53" && !own {
			return host + ":" + port
		}
	}
	return ""
}

package jobspec

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// upstreamDirectory contains PERSIA's examples in upstream's images (Dockerfile in
// PersiaML/PERSIA).
const upstreamDirectory = "/home/PERSIA"

// file is a file that roles of a job read.
type file struct {
	name, path string
	script     bool // a Python script, or else a YAML file
	kinds      []Kind
}

func (env PersiaEnv) files() []file {
	return []file{
		{"PERSIA_GLOBAL_CONFIG", env.GlobalConfig, false, Kinds()},
		{"PERSIA_EMBEDDING_CONFIG", env.EmbeddingConfig, false, Kinds()},
		{"PERSIA_NN_WORKER_ENTRY", env.NNWorkerEntry, true, []Kind{KindNNWorker}},
		{"PERSIA_DATALOADER_ENTRY", env.DataloaderEntry, true, []Kind{KindDataloader}},
	}
}

// checkFiles checks the files of a job and that the roles have them: in the image, or on a
// volume that the role mounts.
func (c *checker) checkFiles(at *field.Path, j *Job) {
	files := j.PersiaEnv.files()
	for i, f := range files {
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
		if other := slices.IndexFunc(files[:i], func(o file) bool { return path.Clean(o.path) == path.Clean(f.path) }); other >= 0 {
			c.Warn(at, "%s is also %s, but each of them has contents of its own; write another file", f.path, files[other].name)
		}
		if kind := path.Ext(f.path); f.script && slices.Contains([]string{".yml", ".yaml", ".json"}, kind) || !f.script && kind == ".py" {
			c.Warn(at, "%s does not look like %s by its name; write another file", f.path, map[bool]string{true: "a Python script", false: "a YAML file"}[f.script])
		}
		c.warnOfMissingFile(at, j, f)
	}
}

// warnOfMissingFile warns of roles that may not have a file.
func (c *checker) warnOfMissingFile(at *field.Path, j *Job, f file) {
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
		c.Warn(at, "%s is on a volume that %s does not mount; add it to mounts of that role, or of the job", f.path, check.And(lack))
	default:
		c.Warn(at, "%s is below no mount of %s, and upstream's images have only the examples below %s; write a path below a mountPath, or an image with the file", f.path, check.And(lack), upstreamDirectory)
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
func (c *checker) warnOfCheckpoints(j *Job) {
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
	if name := j.ofEachNode(); name != "" && len(j.Mounts) == 0 && c.context.Created && !c.context.OneNode {
		c.Warn(j.at.Child("volumes").Key(name), "is another directory on each node, so a replica that restarts on another node does not find its checkpoint, and a new node has none; use mounts with a volume of %s", c.context.StorageKey)
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

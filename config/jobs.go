package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/job"
)

// hashLength is what the label controller-revision-hash of a StatefulSet's pods
// has more than the StatefulSet's name: a hyphen and up to ten characters. The
// index in a pod's name is shorter.
const hashLength = 11

// derivedName is that of a service of a job: the job's name with a suffix. The roles are
// StatefulSets of the same name, and need some characters more.
type derivedName struct {
	suffix string
	more   int
}

func derivedNames() []derivedName {
	names := []derivedName{{"-metrics-gateway-service", 0}}
	for _, kind := range job.Kinds() {
		names = append(names, derivedName{"-" + kind.Name, hashLength})
	}
	return names
}

func (v *validator) jobs() {
	jobs := v.stack.Jobs
	names := make([]string, len(jobs))
	for i := range jobs {
		names[i] = jobs[i].Name
		v.job(jobs[i].At(), &jobs[i])
	}
	unique(names, func(i, first int) {
		v.duplicate(jobs[i].At().Child("name"), names[i], "is that of %s; each job has a name of its own", v.PathOf(jobs[first].At()))
	})
}

func (v *validator) job(path *field.Path, j *Job) {
	v.name(path.Child("name"), j.Name, validation.IsDNS1035Label)
	v.derivedNamesFit(path.Child("name"), j.Name)
	v.name(path.Child("runId"), j.RunID, validation.IsDNS1123Label)
	v.roleEnv(path.Child("env"), j.Env)
	v.persiaEnv(path.Child("persiaEnv"), j.PersiaEnv)
	v.mounts(path.Child("mounts"), j.Mounts, nil)
	v.imagePullSecrets(path.Child("imagePullSecrets"), j.ImagePullSecrets)
	v.script(path.Child("script"), j.Script)
	v.podVolumes(path.Child("volumes"), j.Volumes)
	for _, r := range j.Roles() {
		v.role(path.Child(r.Field), r)
		v.mounts(path.Child(r.Field, "mounts"), r.Mounts, j.Mounts)
		v.volumeMounts(path.Child(r.Field, "volumeMounts"), j, r.Role)
	}
	v.nprocPerNode(path.Child("nnWorker", "nprocPerNode"), j.NNWorker)
	v.engine(path, j)
}

// derivedNamesFit checks that all names made of a job's name can be labels.
func (v *validator) derivedNamesFit(path *field.Path, name string) {
	longest, why := validation.DNS1123LabelMaxLength, ""
	for _, d := range derivedNames() {
		if most := validation.DNS1123LabelMaxLength - len(d.suffix) - d.more; most < longest {
			longest = most
			why = fmt.Sprintf("so that NAME%s, and the %d characters that a pod label adds to it, have at most %d", d.suffix, d.more, validation.DNS1123LabelMaxLength)
		}
	}
	v.atMost(longest, path, name, why)
}

func (v *validator) persiaEnv(at *field.Path, env job.PersiaEnv) {
	for _, file := range []struct{ name, path string }{
		{"PERSIA_GLOBAL_CONFIG", env.GlobalConfig},
		{"PERSIA_EMBEDDING_CONFIG", env.EmbeddingConfig},
		{"PERSIA_NN_WORKER_ENTRY", env.NNWorkerEntry},
		{"PERSIA_DATALOADER_ENTRY", env.DataloaderEntry},
	} {
		switch {
		case file.path == "":
			v.required(at.Child(file.name), "write the file's absolute path in the containers, like /workspace/config.yml")
		case !path.IsAbs(file.path):
			v.invalid(at.Child(file.name), file.path, "must be the file's absolute path in the containers, like %s", path.Join("/workspace", file.path))
		}
	}
}

func (v *validator) imagePullSecrets(path *field.Path, secrets []corev1.LocalObjectReference) {
	for i, secret := range secrets {
		v.name(path.Index(i).Child("name"), secret.Name, validation.IsDNS1123Subdomain)
	}
}

func (v *validator) script(path *field.Path, s *Script) {
	if s == nil {
		return
	}
	v.directory(path.Child("python"), s.Python)
	v.directory(path.Child("runtime"), s.Runtime)
	for _, message := range validation.IsValidPortNum(s.Port) {
		v.invalid(path.Child("port"), s.Port, "%s; leave it out for the default", message)
	}
}

// sharedMemory is where the processes of a replica exchange data.
const sharedMemory = "/dev/shm"

// takenPaths are where the program itself mounts something.
var takenPaths = map[string]string{
	sharedMemory:      "shared memory",
	"/opt/persia":     "where the script is that replicas start with",
	"/var/lib/persia": "where a replica that has finished is remembered",
}

// mounts checks the mounts of a job, or those of a role, which come to the job's.
func (v *validator) mounts(path *field.Path, mounts, ofJob []Mount) {
	paths := make([]string, len(mounts))
	for i, m := range mounts {
		at := path.Index(i)
		paths[i] = m.MountPath
		v.mountedVolume(at.Child("volume"), m.Volume)
		v.directory(at.Child("mountPath"), m.MountPath)
		if taken := takenPaths[m.MountPath]; taken != "" {
			v.invalid(at.Child("mountPath"), m.MountPath, "is %s; choose another path", taken)
		}
		if slices.ContainsFunc(ofJob, func(other Mount) bool { return other.MountPath == m.MountPath }) {
			v.duplicate(at.Child("mountPath"), m.MountPath, "is that of a mount of the job, which every role has; each volume has a path of its own")
		}
	}
	unique(paths, func(i, first int) {
		v.duplicate(path.Index(i).Child("mountPath"), paths[i], "is that of mounts[%d]; each volume has a path of its own", first)
	})
}

func (v *validator) mountedVolume(path *field.Path, name string) {
	if !v.decoded(storageKey) {
		return
	}
	names := make([]string, len(v.stack.Storage))
	for i, volume := range v.stack.Storage {
		if names[i] = volume.Name; name != "" && name == volume.Name {
			return
		}
	}
	if len(names) == 0 {
		v.invalid(path, name, "must be a volume, and the stack has none; write one in %s", storageKey)
		return
	}
	v.invalid(path, name, "must be one of the stack's volumes: %s", or(names))
}

func (v *validator) role(path *field.Path, r job.NamedRole) {
	if r.Replicas < 1 {
		v.invalid(path.Child("replicas"), r.Replicas, "must be at least 1; a PERSIA job needs each of its roles")
	}
	if strings.ContainsFunc(r.Image, unicode.IsSpace) {
		v.invalid(path.Child("image"), r.Image, "must be an image reference without spaces, like persiaml/persia-cpu-runtime:latest")
	}
	if r.TerminationGracePeriodSeconds < 0 {
		v.invalid(path.Child("terminationGracePeriodSeconds"), r.TerminationGracePeriodSeconds, "must be at least 1; leave it out for the default")
	}
	v.roleEnv(path.Child("env"), r.Env)
	if pool, ok := v.assignment(path, r.Field, r.NodePool, r.Resources, v.stack.rolePools()); ok {
		v.gpusFit(path.Child("resources"), r.Field, r.Resources, pool)
	}
}

// rolePools are the node pools that a role may name: those of the stack, or the system
// pool of a cluster that has no others.
func (s *Stack) rolePools() []string {
	if len(s.NodePools) == 0 {
		return []string{s.SystemPoolName()}
	}
	return s.poolNames()
}

func (v *validator) nprocPerNode(path *field.Path, w NNWorker) {
	gpus := gpusOf(w.Resources)
	switch {
	case w.NprocPerNode < 1:
		v.invalid(path, w.NprocPerNode, "must be at least 1; leave it out for one process a GPU")
	case gpus > 0 && w.NprocPerNode > gpus:
		v.invalid(path, w.NprocPerNode, "must be at most the %d GPUs that a replica asks for; leave it out for one process a GPU", gpus)
	}
}

// serviceNames checks that no job makes a service that a NATS makes too. Two jobs
// cannot: their names differ, and no suffix ends with another.
func (v *validator) serviceNames() {
	for _, cluster := range v.stack.NATSClusters() {
		for _, j := range v.stack.Jobs {
			for _, d := range derivedNames() {
				if service := j.Name + d.suffix; service == cluster.Name || service == cluster.Name+"-mgmt" {
					v.invalid(j.At().Child("name"), j.Name, "makes the service %s, which %s makes too; rename one of the two", service, cluster.NamePath(field.NewPath(natsKey)))
				}
			}
		}
	}
}

package jobspec

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/images"
	"persia/config/pod"
)

// checker checks the jobs of a stack.
type checker struct {
	*check.Problems
	context Context
}

// Check checks the jobs of a stack file. It does not check whether the roles fit the nodes of
// their pools.
func Check(p *check.Problems, jobs []Job, context Context) {
	c := &checker{p, context}
	for i := range jobs {
		c.job(jobs[i].At(), &jobs[i])
	}
	check.Unique(jobs, func(j Job) string { return j.Name }, func(i, first int, name string) {
		p.Duplicate(jobs[i].At().Child("name"), name, "is already used by %s; give each job its own name", p.PathOf(jobs[first].At()))
	})
	c.sameObjects(jobs)
	c.sameCheckpoints(jobs)
}

// sameCheckpoints warns of jobs with one directory of checkpoints: each of them removes what it
// takes for its own old checkpoints, and resumes from the newest one.
func (c *checker) sameCheckpoints(jobs []Job) {
	type directory struct{ volume, path string }
	first := map[directory]*Job{}
	for i := range jobs {
		j := &jobs[i]
		for _, env := range j.envs() {
			for k, e := range env.list {
				d := directory{j.volumeAt(e.Value), path.Clean(e.Value)}
				if e.Name != checkpointDirectory || d.volume == "" {
					continue
				}
				if other := first[d]; other != nil && other != j {
					c.Warn(env.at.Index(k).Child("value"), "%s is also the directory of %s, so each of the two jobs removes the checkpoints of the other; write a directory for each job", e.Value, c.PathOf(other.At()))
				}
				first[d] = j
			}
		}
	}
}

// volumeAt returns the volume of the stack that nn-workers mount at or above a path, or "".
func (j *Job) volumeAt(file string) string {
	for _, m := range j.MountsOf(j.NNWorker.Role) {
		if path.Clean(file) == m.MountPath || strings.HasPrefix(path.Clean(file), m.MountPath+"/") {
			return m.Volume
		}
	}
	return ""
}

// sameObjects refuses names of jobs that are also names of objects of other jobs. A job that
// PERSIA's operator runs has a PodDisruptionBudget and a NetworkPolicy of its name, and a
// JobSet has a Service.
func (c *checker) sameObjects(jobs []Job) {
	suffixes := []string{"-completion"}
	for _, kind := range Kinds() {
		suffixes = append(suffixes, "-"+kind.Name)
	}
	for i := range jobs {
		for j := range jobs {
			suffix, derived := strings.CutPrefix(jobs[i].Name, jobs[j].Name)
			if derived && jobs[i].Engine != EngineStatefulSet && slices.Contains(suffixes, suffix) {
				c.Invalid(jobs[i].At().Child("name"), jobs[i].Name, "is also the name of objects of %s; choose another name", c.PathOf(jobs[j].At()))
			}
		}
	}
}

func (c *checker) job(path *field.Path, j *Job) {
	c.Name(path.Child("name"), j.Name, validation.IsDNS1035Label)
	checkDerivedNames(c.Problems, path.Child("name"), j)
	c.Name(path.Child("runId"), j.RunID, validation.IsDNS1123Label)
	checkEnv(c.Problems, path.Child("env"), j.Env)
	c.checkFiles(path.Child("persiaEnv"), j)
	c.mounts(path.Child("mounts"), j.Mounts, nil)
	check.Range(c.Problems, path.Child("checkpointSeconds"), j.CheckpointSeconds, 0, mostSeconds, "")
	check.Range(c.Problems, path.Child("restartSeconds"), j.RestartSeconds, 0, mostSeconds, "")
	if j.HashmapShards < 1 {
		c.Invalid(path.Child("hashmapShards"), j.HashmapShards, "must be at least 1; remove it for PERSIA's default")
	}
	if j.HashmapShards > manyShards {
		c.Warn(path.Child("hashmapShards"), "%d is the number of files that each embedding parameter server writes for a checkpoint; write num_hashmap_internal_shards of the global configuration, which is 1000 by default", j.HashmapShards)
	}
	pod.PullSecrets(c.Problems, path.Child("imagePullSecrets"), j.ImagePullSecrets)
	checkScript(c.Problems, path.Child("script"), j.Script)
	checkVolumes(c.Problems, path.Child("volumes"), j.Volumes)
	for _, r := range j.Roles() {
		checkRole(c.Problems, path.Child(r.Field), r.Role)
		c.mounts(path.Child(r.Field, "mounts"), r.Mounts, j.Mounts)
		checkVolumeMounts(c.Problems, path.Child(r.Field, "volumeMounts"), j, r.Role)
		c.checkHostPaths(path.Child("volumes"), j, r.Role)
	}
	checkProcesses(c.Problems, path.Child("nnWorker", "nprocPerNode"), j.NNWorker)
	c.warnOfCheckpoints(j)
	c.warnOfVariables(j)
	c.warnOfImages(j)
	c.warnOfVolumes(path.Child("volumes"), j)
	if j.Engine == EngineOperator {
		c.operator(path, j)
	}
}

// manyShards is a number of shards above which the program warns.
const manyShards = 100_000

// mostSeconds is a day, longer than any checkpoint or restart.
const mostSeconds = 24 * 60 * 60

// hashLength is the length of the suffix that Kubernetes appends to the name of a StatefulSet in the
// label controller-revision-hash of its pods: a hyphen and up to ten characters. The index in
// the name of a pod is shorter.
const hashLength = 11

// suffixLength is the length of the suffix that Kubernetes appends to the name of a pod of a Job, which
// JobSet wants to be a label: a hyphen and five characters.
const suffixLength = 6

// derivedName is the name of a Service of a job: the job's name and a suffix. The role is a
// StatefulSet of the same name, and a pod label appends more characters to it.
type derivedName struct {
	suffix string
	more   int
}

func (j *Job) derivedNames() []derivedName {
	names := []derivedName{{"-metrics-gateway-service", 0}}
	for _, kind := range Kinds() {
		more := hashLength
		if j.Engine == EngineJobSet {
			more = len("-0-") + len(strconv.Itoa(kind.Of(j).Replicas-1)) + suffixLength
		}
		names = append(names, derivedName{"-" + kind.Name, more})
	}
	return names
}

// Services returns the names of the Services of the job.
func (j *Job) Services() []string {
	if j.Engine == EngineJobSet {
		return []string{j.Name + "-metrics-gateway-service", j.Name}
	}
	var services []string
	for _, d := range j.derivedNames() {
		services = append(services, j.Name+d.suffix)
	}
	return services
}

// checkDerivedNames checks that all names derived from a job's name can be labels.
func checkDerivedNames(p *check.Problems, path *field.Path, j *Job) {
	longest, why, name := validation.DNS1123LabelMaxLength, "", j.Name
	for _, d := range j.derivedNames() {
		if most := validation.DNS1123LabelMaxLength - len(d.suffix) - d.more; most < longest {
			longest = most
			why = fmt.Sprintf("so that NAME%s, and the %d characters that a pod label adds to it, have at most %d", d.suffix, d.more, validation.DNS1123LabelMaxLength)
		}
	}
	p.AtMost(longest, path, name, why)
}

// computedEnv maps the variables that the program computes, and with which another value
// would break the job, to the fields that determine them. A stack file can override the other
// variables that the program sets.
var computedEnv = computed(map[string][]string{
	"replicas and nprocPerNode": {
		"REPLICA_INDEX", "REPLICA_SIZE",
		"NODE_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT",
		"PERSIA_ROLE", "PERSIA_COORDINATOR", "PERSIA_POD_UID", "PERSIA_REVISION", "PERSIA_STATE_DIR", "PERSIA_FORMER_STATE_DIR", "PERSIA_IDLE_FILE", "PERSIA_PROGRESS_FILE", "PERSIA_REPLICAS", "PERSIA_REPLICA_METRICS",
		"PERSIA_NODE_RANK", "PERSIA_NODES",
	},
	"runId":       {"PERSIA_RUN"},
	"name":        {"PERSIA_JOB"},
	"engine":      {"PERSIA_ONCE"},
	"mounts":      {"PERSIA_CKPT_ROOT"},
	"persia:nats": {"PERSIA_NATS_AUTHORITY"},
	"resources":   {"PERSIA_GPUS"},
	"script":      {"PERSIA_PYTHON", "PERSIA_RUNTIME", "PERSIA_PORT"},
	"persiaEnv":   {"PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG", "PERSIA_NN_WORKER_ENTRY", "PERSIA_DATALOADER_ENTRY", "PERSIA_SCRIPT"},
})

func computed(fields map[string][]string) map[string]string {
	decidedBy := map[string]string{}
	for field, names := range fields {
		for _, name := range names {
			decidedBy[name] = field
		}
	}
	return decidedBy
}

// rule describes the valid values of a variable.
type rule struct {
	valid *regexp.Regexp
	want  string
}

var (
	seconds     = regexp.MustCompile(`^\d+(\.\d+)?$`)
	wholeNumber = regexp.MustCompile(`^0*[1-9]\d*$`)
	duration    = rule{seconds, "a number of seconds without a unit, like 60; remove it for the default"}
)

// readEnv are the variables that the start script of replicas parses as numbers
// (workload/persia/settings.py). It exits at any other value.
var readEnv = map[string]rule{
	"PERSIA_STUCK_SECONDS": {seconds, "a number of seconds, like 7200 for two hours, or 0 for no limit"},
	"PERSIA_CKPT_KEEP":     {wholeNumber, "a whole number of checkpoints, at least 1; remove it for 2"},
	"PERSIA_ATTEMPTS":      {wholeNumber, "a whole number of attempts, at least 1; remove it for 5"},

	"PERSIA_BACKOFF_SECONDS": duration,
	"PERSIA_BEAT_SECONDS":    duration,
	"PERSIA_END_SECONDS":     duration,
	"PERSIA_HANG_SECONDS":    duration,
	"PERSIA_LOOK_SECONDS":    duration,
	"PERSIA_LOST_SECONDS":    duration,
	"PERSIA_NATS_SECONDS":    duration,
	"PERSIA_STOP_SECONDS":    duration,
	"PERSIA_TOLD_SECONDS":    duration,
}

// checkEnv checks the variables of a job or of a role.
func checkEnv(p *check.Problems, path *field.Path, env []corev1.EnvVar) {
	pod.Env(p, path, env)
	for i, e := range env {
		if field, ok := computedEnv[e.Name]; ok {
			p.Invalid(path.Index(i).Child("name"), e.Name, "is set by %s; remove it, and set those instead", field)
		}
		// Kubernetes expands references to other variables in the pod.
		if rule, ok := readEnv[e.Name]; ok && e.ValueFrom == nil && !strings.Contains(e.Value, "$(") && !rule.valid.MatchString(e.Value) {
			p.Invalid(path.Index(i).Child("value"), e.Value, "must be %s", rule.want)
		}
	}
}

func checkScript(p *check.Problems, at *field.Path, s *Script) {
	if s == nil {
		return
	}
	check.Directory(p, at.Child("python"), s.Python)
	if path.Base(s.Python) == "bin" {
		p.Warn(at.Child("python"), "%s does not look like an interpreter by its name; write the path of the program, like %s", s.Python, path.Join(s.Python, "python3"))
	}
	check.Directory(p, at.Child("runtime"), s.Runtime)
	check.Port(p, at.Child("port"), s.Port)
}

const (
	// mostReplicas is the pod limit of a cluster (GKE, "Quotas and limits").
	mostReplicas = 200_000
	// shortestGrace is a time, in seconds, below which the program warns.
	shortestGrace = 5
	// UsualGrace is the default of terminationGracePeriodSeconds.
	UsualGrace = 60
	// longestGrace is a day, in seconds.
	longestGrace = 24 * 60 * 60
)

func checkRole(p *check.Problems, path *field.Path, r *Role) {
	switch {
	case r.Replicas < 1:
		p.Invalid(path.Child("replicas"), r.Replicas, "must be at least 1; a PERSIA job needs each of its roles")
	case r.Replicas > mostReplicas:
		p.Invalid(path.Child("replicas"), r.Replicas, "must be at most %d, the pod limit of a GKE cluster", mostReplicas)
	}
	if r.Image != "" {
		pod.Image(p, path.Child("image"), r.Image, images.PERSIACPU.Reference())
	}
	switch at, seconds := path.Child("terminationGracePeriodSeconds"), r.TerminationGracePeriodSeconds; {
	case seconds < 0:
		p.Invalid(at, seconds, "must be at least 1; omit it for the default")
	case seconds > 0 && seconds < shortestGrace:
		p.Warn(at, "%d s is too short to stop a replica in order; write how many seconds a checkpoint takes, or omit it", seconds)
	case seconds > longestGrace:
		p.Invalid(at, seconds, "must be at most %d, one day, because the replacement of a node waits for it; write how many seconds a checkpoint takes", longestGrace)
	}
	checkEnv(p, path.Child("env"), r.Env)
}

func checkProcesses(p *check.Problems, path *field.Path, w NNWorker) {
	gpus := pod.GPUs(w.Resources)
	cpu, _, _ := pod.Limit(nil, w.Resources, corev1.ResourceCPU)
	cpus := int(cpu.Value()) // rounded up
	switch {
	case w.NprocPerNode < 1:
		p.Invalid(path, w.NprocPerNode, "must be at least 1; omit it for one process per GPU")
	case gpus > 0 && w.NprocPerNode > gpus:
		p.Invalid(path, w.NprocPerNode, "must be at most %d, the number of GPUs that a replica requests; omit it for one process per GPU", gpus)
	case gpus > w.NprocPerNode:
		p.Warn(path, "%d processes leave %d of %d GPUs idle, which are billed; omit it for one process per GPU", w.NprocPerNode, gpus-w.NprocPerNode, gpus)
	case gpus == 0 && w.NprocPerNode > cpus:
		p.Warn(path, "%d processes share %d CPUs; write at most one process per CPU", w.NprocPerNode, cpus)
	}
}

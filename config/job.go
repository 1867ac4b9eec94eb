package config

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

	"persia/config/input"
	"persia/gcp"
)

// Job is a PERSIA training job. Its fields have the names of the fields of a PersiaJob;
// the names that older releases of PERSIA use are accepted too.
type Job struct {
	// The tag beside is on fields that no PersiaJob has, and that stay in the stack file
	// next to manifest.

	// Manifest is a file with PersiaJobs, relative to the project's directory. Each becomes a job.
	// The other fields here override it, and a NatsCluster in it applies where persia:nats is
	// silent.
	Manifest string `json:"manifest,omitempty" beside:"manifest"`
	// Name is unique in the stack, and the prefix of the names of the job's objects. Name, the
	// roles, and `persiaEnv` are required without `manifest`.
	Name string `json:"name,omitempty" beside:"manifest"`
	// RunID names one run of the training job. Change it to train again from the start.
	RunID string `json:"runId,omitempty" default:"1" form:"label" beside:"manifest"`
	// Suspend removes all replicas of the job so that their nodes can be released, after
	// the job has finished or until you resume it.
	Suspend bool `json:"suspend,omitempty" beside:"manifest"`
	// Engine creates the pods: statefulset, a StatefulSet for each role; jobset, a JobSet of all
	// roles, whose pods end with the job; or operator, a PersiaJob, which PERSIA's operator runs.
	Engine Engine `json:"engine,omitempty" default:"statefulset" enum:"statefulset,jobset,operator" beside:"manifest"`
	// Queue is the team in persia:queue in whose queue the job waits for room for all replicas. It
	// requires engine: jobset. Default: the job does not wait.
	Queue string `json:"queue,omitempty" beside:"manifest"`
	// Priority is a name in persia:queue. Default: the name default.
	Priority string `json:"priority,omitempty" beside:"manifest"`
	// Script starts the roles with a script instead of persia-launcher, which images of
	// older PERSIA releases do not have.
	Script *Script `json:"script,omitempty" beside:"manifest"`
	// NATS overrides settings of persia:nats for the job's own NATS cluster.
	NATS NATSOverrides `json:"nats,omitempty" beside:"manifest"`
	// Env are environment variables that every role gets.
	Env       []corev1.EnvVar `json:"env,omitempty"`
	PersiaEnv PersiaEnv       `json:"persiaEnv,omitempty"`
	// NodePool is the node pool of roles that do not set their own.
	NodePool string `json:"nodePool,omitempty" beside:"manifest"`
	// Mounts are volumes of the stack that every role mounts.
	Mounts []Mount `json:"mounts,omitempty" beside:"manifest"`
	// Volumes are Kubernetes volumes for the `volumeMounts` of the roles.
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// HashmapShards repeats `num_hashmap_internal_shards` of the job's global configuration: the
	// number of files that an embedding parameter server writes for a checkpoint, four at a time.
	HashmapShards int `json:"hashmapShards,omitempty" default:"1000" min:"1" beside:"manifest"`
	// CheckpointSeconds is how long a checkpoint takes. With it, the preview shows the best
	// interval, if a machine type of the job has `hoursBetweenFailures`.
	CheckpointSeconds int `json:"checkpointSeconds,omitempty" max:"86400" beside:"manifest"`
	// RestartSeconds is how long a new attempt takes until it trains, for that interval.
	RestartSeconds int `json:"restartSeconds,omitempty" default:"600" max:"86400" beside:"manifest"`
	// EnableMetrics adds a Pushgateway to which the roles push metrics.
	EnableMetrics bool `json:"enableMetrics,omitempty" default:"true"`
	// LogLevel is one of trace, debug, info, warn and error.
	LogLevel string `json:"logLevel,omitempty" default:"info" enum:"trace,debug,info,warn,error"`
	// RestartPolicy is Never, OnFailure or Always, for pods that PERSIA's operator creates. The
	// statefulset engine ignores it.
	RestartPolicy corev1.RestartPolicy `json:"restartPolicy,omitempty" default:"Never" enum:"Never,OnFailure,Always"`
	// ImagePullPolicy is Always, IfNotPresent or Never.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty" default:"Always" enum:"Always,IfNotPresent,Never"`
	// ImagePullSecrets are Secrets of the namespace persia with the credentials of
	// registries.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty" beside:"manifest"`

	// NNWorker trains the dense neural network.
	NNWorker NNWorker `json:"nnWorker,omitempty"`
	// Dataloader reads the training data and feeds it to the other roles.
	Dataloader Role `json:"dataloader,omitempty"`
	// EmbeddingWorker fetches embeddings for the nn-workers and returns their gradients to
	// the embedding parameter servers.
	EmbeddingWorker Role `json:"embeddingWorker,omitempty"`
	// EmbeddingParameterServer stores the embeddings and updates them.
	EmbeddingParameterServer Role `json:"embeddingParameterServer,omitempty"`

	at *field.Path // the path of the job in the stack file
}

// Engine names the controller that creates the pods of a job.
type Engine string

// The engines.
const (
	// EngineStatefulSet creates a StatefulSet for each role.
	EngineStatefulSet Engine = "statefulset"
	// EngineJobSet creates a JobSet of all roles, whose pods end with the job.
	EngineJobSet Engine = "jobset"
	// EngineOperator creates a PersiaJob, which PERSIA's operator runs.
	EngineOperator Engine = "operator"
)

// Script describes how to start the roles without persia-launcher: Python scripts with an
// interpreter, and servers from the directory of their programs.
type Script struct {
	// Python is the absolute path of the interpreter in the containers.
	Python string `json:"python,omitempty" default:"/opt/conda/bin/python3" form:"directory"`
	// Runtime is the absolute path of the directory, in the containers, with
	// persia-middleware-server and persia-embedding-server.
	Runtime string `json:"runtime" form:"directory"`
	// Port is the port on which both servers listen.
	Port int `json:"port,omitempty" default:"23333" max:"65535"`
}

// PersiaEnv holds the absolute paths, in the containers, of the files that a job runs.
type PersiaEnv struct {
	// GlobalConfig is PERSIA's global configuration, a YAML file.
	GlobalConfig string `json:"PERSIA_GLOBAL_CONFIG"`
	// EmbeddingConfig is PERSIA's embedding configuration, a YAML file.
	EmbeddingConfig string `json:"PERSIA_EMBEDDING_CONFIG"`
	// NNWorkerEntry is the Python script that an nn-worker runs.
	NNWorkerEntry string `json:"PERSIA_NN_WORKER_ENTRY"`
	// DataloaderEntry is the Python script that a dataloader runs.
	DataloaderEntry string `json:"PERSIA_DATALOADER_ENTRY"`
}

// Mount says where the containers of a job mount a volume of the stack.
type Mount struct {
	// Volume is the name of one of the stack's volumes.
	Volume string `json:"volume"`
	// MountPath is an absolute path in the containers.
	MountPath string `json:"mountPath" form:"directory"`
	// ReadOnly prevents the containers from writing to the volume.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Role describes the replicas of one of the four roles of a PERSIA job: how many there
// are, where they run, and what resources they have.
type Role struct {
	// Replicas is the number of pods of the role.
	Replicas int `json:"replicas,omitempty" default:"1" max:"200000"`
	// NodePool is the node pool on which the replicas run. Default: the job's.
	NodePool string `json:"nodePool,omitempty" beside:"manifest"`
	// Resources are the requests and limits of one replica. At least cpu and memory are
	// required. Requests default to the limits, as in Kubernetes.
	Resources corev1.ResourceRequirements `json:"resources"`
	// Image is the container image. Default: upstream's runtime image for the role.
	Image string `json:"image,omitempty"`
	// Env are environment variables of this role, which take precedence over the job's.
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Mounts are volumes of the stack that this role mounts in addition to the job's.
	Mounts []Mount `json:"mounts,omitempty" beside:"manifest"`
	// VolumeMounts mount the job's `volumes` by name.
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// TerminationGracePeriodSeconds is how long a replica may take to stop, for example
	// to write a checkpoint.
	TerminationGracePeriodSeconds int `json:"terminationGracePeriodSeconds,omitempty" default:"60" max:"86400" beside:"manifest"`

	stored []storedMount // the volumes of the stack that the role mounts
}

// storedMount is a volume of the stack that a role mounts.
type storedMount struct {
	*Volume
	readOnly bool
}

// NNWorker is the role whose replicas start several processes.
type NNWorker struct {
	Role `json:",inline"`
	// NprocPerNode is the number of training processes per replica. Default: the number
	// of GPUs that a replica requests, or 1.
	NprocPerNode int `json:"nprocPerNode,omitempty" min:"1"`
}

// At returns the path of the job in the stack file.
func (j *Job) At() *field.Path { return j.at }

// SetPath sets the path of the job in the stack file.
func (j *Job) SetPath(at *field.Path) { j.at = at }

// Resolve fills in defaults that depend on other fields. It leaves an empty image, which
// means the default image of the role.
func (j *Job) Resolve() {
	if j.NNWorker.NprocPerNode == 0 {
		j.NNWorker.NprocPerNode = max(1, GPUs(j.NNWorker.Resources))
	}
	for _, role := range j.Roles() {
		if role.NodePool == "" {
			role.NodePool = j.NodePool
		}
	}
}

// MountsOf returns the mounts of a role: the job's, and its own.
func (j *Job) MountsOf(role Role) []Mount { return slices.Concat(j.Mounts, role.Mounts) }

// mountsVolume reports whether the role mounts one of the job's Volumes.
func (r *Role) mountsVolume(name string) bool {
	return slices.ContainsFunc(r.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
}

// MountsHostPaths reports whether the job has hostPath volumes.
func (j *Job) MountsHostPaths() bool {
	return slices.ContainsFunc(j.Volumes, func(volume corev1.Volume) bool { return volume.HostPath != nil })
}

// looseByFile returns the fields of the roles whose image the stack file or a manifest names, without a fixed
// tag or digest. Upstream has published its default images with the tag latest only.
func (j *Job) looseByFile() []string {
	var roles []string
	for _, role := range j.Roles() {
		if role.Image != "" && isLooseImage(role.Image) {
			roles = append(roles, role.Field)
		}
	}
	return roles
}

// JobLabel is the label of the pods of a job, whose value is its name. Upstream's tools find the pods
// by it.
const JobLabel = "persia_job"

// Kind describes one of the four roles that every job has.
type Kind struct {
	// Field is the role's name in a stack file and in a PersiaJob.
	Field string
	// Name is the suffix of the names of the role's objects, like in upstream's pods.
	Name string
	// Command is the subcommand of persia-launcher.
	Command string
	// Older is the role's name in the script of releases without persia-launcher.
	Older string
	// DefaultImage is upstream's runtime image (k8s/src/crd.rs in PersiaML/PERSIA). Upstream
	// has published only one tag.
	DefaultImage string
	// Port is the port on which the role listens, or 0.
	Port int
	// Server is true if the role accepts connections of other roles, and is ready when it
	// does.
	Server bool
	// SharedMemory is true if processes of a replica exchange data through memory, as NCCL
	// and the workers of PyTorch's DataLoader do.
	SharedMemory bool
	Priority     Priority

	of func(*Job) *Role
}

// Of returns the role of a job.
func (k Kind) Of(j *Job) *Role { return k.of(j) }

// newerGPU matches Compute Engine's names of the GPUs that PyTorch 1.8 does not support: it
// has kernels up to compute capability 8.x, and H100 (Hopper) has 9.0.
var newerGPU = regexp.MustCompile(`^nvidia-(h[0-9]|gh[0-9]|b[0-9]|gb[0-9]|rtx-pro-)`)

// DefaultImageComputesOn reports whether the default image of nn-workers, which contains
// PyTorch 1.8, supports a type of GPU.
func DefaultImageComputesOn(gpuType string) bool { return !newerGPU.MatchString(gpuType) }

// MasterPort is the rendezvous port of torch.distributed.
const MasterPort = 23456

// The kinds of roles.
var (
	KindDataloader = Kind{
		Field: "dataloader", Name: "dataloader", Command: "data-loader", Older: "datacompose", DefaultImage: ImagePERSIACPU.Reference(),
		SharedMemory: true, Priority: PriorityDataloader,
		of: func(j *Job) *Role { return &j.Dataloader },
	}
	KindEmbeddingWorker = Kind{
		Field: "embeddingWorker", Name: "embedding-worker", Command: "embedding-worker", Older: "middleware", DefaultImage: ImagePERSIACPU.Reference(),
		Port: 8887, Server: true, Priority: PriorityEmbeddingWorker,
		of: func(j *Job) *Role { return &j.EmbeddingWorker },
	}
	KindEmbeddingParameterServer = Kind{
		Field: "embeddingParameterServer", Name: "embedding-ps", Command: "embedding-parameter-server", Older: "embserver", DefaultImage: ImagePERSIACPU.Reference(),
		Port: 8888, Server: true, Priority: PriorityEmbeddingParameterServer,
		of: func(j *Job) *Role { return &j.EmbeddingParameterServer },
	}
	KindNNWorker = Kind{
		Field: "nnWorker", Name: "nn-worker", Command: "nn-worker", Older: "trainer", DefaultImage: ImagePERSIACUDA.Reference(),
		Port: MasterPort, SharedMemory: true, Priority: PriorityNNWorker,
		of: func(j *Job) *Role { return &j.NNWorker.Role },
	}
)

// Kinds returns the four kinds of roles, in the order of a stack file.
func Kinds() []Kind {
	return []Kind{KindNNWorker, KindDataloader, KindEmbeddingWorker, KindEmbeddingParameterServer}
}

// NamedRole is a role of a job with its kind.
type NamedRole struct {
	Kind
	*Role
}

// Roles returns the roles of a job, in the order of a stack file.
func (j *Job) Roles() []NamedRole {
	var roles []NamedRole
	for _, kind := range Kinds() {
		roles = append(roles, NamedRole{kind, kind.of(j)})
	}
	return roles
}

// Priority is a PriorityClass: if there is not enough room, pods of a higher priority evict
// pods of a lower one.
//
// Roles with larger replicas have higher priorities. So large pods get their nodes in any
// order of creation, and small pods fill the rest.
type Priority struct {
	Name        string
	Value       int
	Description string
}

// The priorities of a stack's pods. Other pods have 0.
var (
	PriorityNATS                     = Priority{"persia-nats", 1000, "NATS servers, which every role needs"}
	PriorityEmbeddingParameterServer = Priority{"persia-embedding-ps", 900, "embedding parameter servers of PERSIA"}
	PriorityNNWorker                 = Priority{"persia-nn-worker", 800, "nn-workers of PERSIA"}
	PriorityEmbeddingWorker          = Priority{"persia-embedding-worker", 700, "embedding workers of PERSIA"}
	PriorityDataloader               = Priority{"persia-dataloader", 600, "dataloaders of PERSIA"}
)

// Priorities returns all priorities.
func Priorities() []Priority {
	return []Priority{PriorityNATS, PriorityEmbeddingParameterServer, PriorityNNWorker, PriorityEmbeddingWorker, PriorityDataloader}
}

// checkpointWriters is the number of checkpoint files that an embedding parameter server
// writes at the same time (persia-model-manager in PersiaML/PERSIA).
const checkpointWriters = 4

// OpenCheckpointBytes returns the size of the checkpoint files that a replica of a role writes
// at the same time. An embedding parameter server writes its memory in HashmapShards files.
// For other roles it returns 0: the size of the dense model, which nn-workers write, is unknown.
func (j *Job) OpenCheckpointBytes(kind Kind) int64 {
	if kind.Field != KindEmbeddingParameterServer.Field || j.HashmapShards < 1 {
		return 0
	}
	memory, _, _ := limitAmount(nil, j.EmbeddingParameterServer.Resources, corev1.ResourceMemory)
	return memory.Value() / int64(j.HashmapShards) * min(checkpointWriters, int64(j.HashmapShards))
}

// reachesAll reports whether pods on all nodes can mount the volume.
func (v *Volume) reachesAll(mount Mount) bool {
	return !v.OnOneNode() && (slices.Contains(v.AccessModes, corev1.ReadWriteMany) ||
		slices.Contains(v.AccessModes, corev1.ReadOnlyMany) && mount.ReadOnly)
}

// jobChecker checks the jobs of a stack.
type jobChecker struct {
	*input.Problems
	stack *Stack
}

// checkJobList checks the jobs of a stack file. It does not check whether the roles fit the nodes of
// their pools.
func checkJobList(p *input.Problems, jobs []Job, stack *Stack) {
	c := &jobChecker{p, stack}
	for i := range jobs {
		c.job(jobs[i].At(), &jobs[i])
	}
	input.Unique(jobs, func(j Job) string { return j.Name }, func(i, first int, name string) {
		p.Duplicate(jobs[i].At().Child("name"), name, "is already used by %s; give each job its own name", p.PathOf(jobs[first].At()))
	})
	c.sameObjects(jobs)
	c.sameCheckpoints(jobs)
}

// sameCheckpoints warns of jobs with one directory of checkpoints: each of them removes what it
// takes for its own old checkpoints, and resumes from the newest one.
func (c *jobChecker) sameCheckpoints(jobs []Job) {
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
func (c *jobChecker) sameObjects(jobs []Job) {
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

func (c *jobChecker) job(path *field.Path, j *Job) {
	c.Name(path.Child("name"), j.Name, validation.IsDNS1035Label)
	checkDerivedNames(c.Problems, path.Child("name"), j)
	checkEnv(c.Problems, path.Child("env"), j.Env)
	c.checkFiles(path.Child("persiaEnv"), j)
	c.mounts(path.Child("mounts"), j.Mounts, nil)
	checkPullSecrets(c.Problems, path.Child("imagePullSecrets"), j.ImagePullSecrets)
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
func checkDerivedNames(p *input.Problems, path *field.Path, j *Job) {
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
		"PERSIA_ROLE", "PERSIA_COORDINATOR", "PERSIA_POD_UID", "PERSIA_REVISION", "PERSIA_STATE_DIR", "PERSIA_IDLE_FILE", "PERSIA_PROGRESS_FILE", "PERSIA_REPLICAS", "PERSIA_REPLICA_METRICS",
		"PERSIA_NODE_RANK", "PERSIA_NODES",
	},
	"runId":     {"PERSIA_RUN"},
	"name":      {"PERSIA_JOB", "PERSIA_TOKEN"},
	"engine":    {"PERSIA_ONCE"},
	"mounts":    {"PERSIA_CKPT_ROOT", "PERSIA_SCRATCH"},
	"resources": {"PERSIA_GPUS"},
	"script":    {"PERSIA_PYTHON", "PERSIA_RUNTIME", "PERSIA_PORT"},
	"persiaEnv": {"PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG", "PERSIA_NN_WORKER_ENTRY", "PERSIA_DATALOADER_ENTRY", "PERSIA_SCRIPT"},
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
}

// checkEnv checks the variables of a job or of a role.
func checkEnv(p *input.Problems, path *field.Path, env []corev1.EnvVar) {
	checkEnvVars(p, path, env)
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

const (
	// shortestGrace is a time, in seconds, below which the program warns.
	shortestGrace = 5
	// UsualGrace is the default of terminationGracePeriodSeconds.
	UsualGrace = 60
)

func checkRole(p *input.Problems, path *field.Path, r *Role) {
	if r.Image != "" {
		checkImage(p, path.Child("image"), r.Image, ImagePERSIACPU.Reference())
	}
	if seconds := r.TerminationGracePeriodSeconds; seconds > 0 && seconds < shortestGrace {
		p.Warn(path.Child("terminationGracePeriodSeconds"), "%d s is too short to stop a replica in order; write how many seconds a checkpoint takes, or omit it", seconds)
	}
	checkEnv(p, path.Child("env"), r.Env)
}

func checkProcesses(p *input.Problems, path *field.Path, w NNWorker) {
	gpus := GPUs(w.Resources)
	switch {
	case gpus > 0 && w.NprocPerNode > gpus:
		p.Invalid(path, w.NprocPerNode, "must be at most %d, the number of GPUs that a replica requests; omit it for one process per GPU", gpus)
	case gpus > w.NprocPerNode:
		p.Warn(path, "%d processes leave %d of %d GPUs idle, which are billed; omit it for one process per GPU", w.NprocPerNode, gpus-w.NprocPerNode, gpus)
	}
}

// elsewhere is the remedy for everything that PERSIA's operator does not support.
const elsewhere = "or write engine: statefulset"

// operator checks that PERSIA's operator supports everything that a job uses.
func (c *jobChecker) operator(path *field.Path, j *Job) {
	unset := Job{}
	input.Defaults(&unset)
	if j.Script != nil {
		c.Invalid(path.Child("script"), j.Script.Runtime, "is not supported by PERSIA's operator, which starts the roles with persia-launcher; remove it, %s", elsewhere)
	}
	if j.RunID != unset.RunID {
		c.Invalid(path.Child("runId"), j.RunID, "is not supported by PERSIA's operator, which does not track runs; remove it, and rename the job to train again, %s", elsewhere)
	}
	for i, secret := range j.ImagePullSecrets {
		c.Invalid(path.Child("imagePullSecrets").Index(i), secret.Name, "is not supported by PERSIA's operator; remove it, and add the Secret to the service account default in the namespace persia, %s", elsewhere)
	}
	c.operatorVolumes(path.Child("volumes"), j.Volumes)
	c.operatorMounts(path.Child("mounts"), j.Mounts)
	for _, r := range j.Roles() {
		c.operatorRole(path.Child(r.Field), r, unset.Dataloader)
	}
}

func (c *jobChecker) operatorRole(path *field.Path, r NamedRole, unset Role) {
	if r.TerminationGracePeriodSeconds != unset.TerminationGracePeriodSeconds {
		c.Invalid(path.Child("terminationGracePeriodSeconds"), r.TerminationGracePeriodSeconds, "is not supported by PERSIA's operator, whose pods have 30; remove it, %s", elsewhere)
	}
	c.operatorMounts(path.Child("mounts"), r.Mounts)
	at := path.Child("nodePool")
	pool, _ := c.stack.Pool(r.NodePool)
	if taint := keepsOff(pool); taint != "" {
		c.Invalid(at, r.NodePool, "has the taint %s, which the pods of PERSIA's operator do not tolerate; choose a pool without it, %s", taint, elsewhere)
	}
	if pool.GPU != nil && GPUs(r.Resources) == 0 {
		c.Invalid(at, r.NodePool, "has GPUs, and GKE keeps pods that request none off its nodes; choose a pool without GPUs, %s", elsewhere)
	}
}

// operatorMounts refuses volumes that not every node can mount: the operator gives the volumes
// of a job to all of its pods, and does not pin pods to nodes.
func (c *jobChecker) operatorMounts(path *field.Path, mounts []Mount) {
	for i, mount := range mounts {
		volume := c.stack.volume(mount.Volume)
		at := path.Index(i).Child("volume")
		switch {
		case volume == nil:
		case volume.MountedBySidecar():
			c.Invalid(at, mount.Volume, "uses gcsFuse, which requires a pod annotation that PERSIA's operator does not set; use a volume with filestore or nfs, %s", elsewhere)
		case !volume.reachesAll(mount) && !c.stack.hasOneNode():
			c.Invalid(at, mount.Volume, "is on a single node, and PERSIA's operator does not pin pods to it; use a volume with filestore or nfs, %s", elsewhere)
		}
	}
}

// operatorVolumes refuses sources that are newer than the operator. It would omit them, and
// Kubernetes would create empty directories instead.
func (c *jobChecker) operatorVolumes(path *field.Path, volumes []corev1.Volume) {
	for i, volume := range volumes {
		at := path.Index(i)
		switch {
		case volume.Ephemeral != nil:
			c.Invalid(at.Child("ephemeral"), volume.Name, "is a volume type that PERSIA's operator does not know; use a persistentVolumeClaim, %s", elsewhere)
		case volume.Image != nil:
			c.Invalid(at.Child("image"), volume.Name, "is a volume type that PERSIA's operator does not know; put the files in the image of the role, %s", elsewhere)
		case volume.CSI != nil && volume.CSI.Driver == gcp.DriverGCSFuse:
			c.Invalid(at.Child("csi", "driver"), volume.CSI.Driver, "requires a pod annotation that PERSIA's operator does not set; use another volume, %s", elsewhere)
		}
	}
}

// Warn warns of settings of a valid job that the user may not have meant. StorageKey is the key of
// the stack's volumes.
func (j *Job) Warn(p *input.Problems, storageKey string) {
	if j.Engine == EngineOperator {
		p.Warn(j.at.Child("engine"), "the operator does not pin pods to their node pools, which only the capacity plan uses: each pod runs on any node with room for it")
		if j.RestartPolicy == corev1.RestartPolicyAlways {
			p.Warn(j.at.Child("restartPolicy"), "pods that have finished start again and train over the existing results, so the job never ends and has no completion; write Never")
		}
	}
	if loose := j.looseByFile(); len(loose) > 0 {
		p.Warn(j.at, "the image of %s has the tag latest, so pods that start later might run another image; write an image with a digest, like persiaml/persia-cpu-runtime@sha256:…", input.And(loose))
	}
	if j.MountsHostPaths() {
		p.Warn(j.at.Child("volumes"), "hostPath volumes are directories of the nodes, and require the namespace of all jobs to admit privileged pods; use mounts with a volume of %s", storageKey)
	}
}

// checkJobs checks the jobs, and that each role fits a node of its pool.
func (s *Stack) checkJobs(p *input.Problems) {
	checkJobList(p, s.Jobs, s)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		for _, role := range j.Roles() {
			at := j.At().Child(role.Field)
			if pool, ok := s.checkAssignment(p, at, role.Field, role.NodePool, role.Resources, s.rolePools(), takesQueued(j, role.Kind)); ok {
				s.checkGPUs(p, at.Child("resources"), role.Field, role.Resources, pool)
				s.checkOpenCheckpoint(p, j.At().Child("hashmapShards"), j, role, pool)
			}
		}
		s.checkServiceNames(p, j)
	}
}

// checkServiceNames checks that no Service of a job has the name of a Service of NATS. The
// Services of two jobs differ, because the names of the jobs do, and no suffix ends with
// another one.
func (s *Stack) checkServiceNames(p *input.Problems, j *Job) {
	for _, cluster := range s.NATSClusters() {
		for _, service := range j.Services() {
			if service == cluster.Name || service == cluster.Name+"-mgmt" {
				p.Invalid(j.At().Child("name"), j.Name, "creates the Service %s, which %s creates too; rename one of them", service, cluster.NamePath(field.NewPath(natsKey)))
			}
		}
	}
}

// uses reports whether a job of the stack has an engine.
func (s *Stack) uses(engine Engine) bool {
	return slices.ContainsFunc(s.Jobs, func(j Job) bool { return j.Engine == engine })
}

// UsesOperator reports whether PERSIA's operator runs a job of the stack.
func (s *Stack) UsesOperator() bool { return s.uses(EngineOperator) }

// InstallsJobSet reports whether the stack brings the controller of its JobSets. Kueue needs
// the definition of JobSets, too.
func (s *Stack) InstallsJobSet() bool {
	return !s.Queue.Existing && (s.HasQueues() || s.uses(EngineJobSet))
}

// InstallsKueue reports whether the stack brings the controller of its queues.
func (s *Stack) InstallsKueue() bool { return s.HasQueues() && !s.Queue.Existing }

// MountsHostPaths reports whether a job has hostPath volumes.
func (s *Stack) MountsHostPaths() bool {
	return slices.ContainsFunc(s.Jobs, func(j Job) bool { return j.MountsHostPaths() })
}

func (s *Stack) warnOfJobs(p *input.Problems) {
	s.warnOfSecrets(p)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		j.Warn(p, storageKey)
		// An empty image is upstream's.
		pool, ok := s.Pool(j.NNWorker.NodePool)
		if severalCards.MatchString(pool.MachineType) && j.NNWorker.Replicas > 1 {
			p.Warn(j.At().Child("nnWorker", "nodePool"), "a %s has several network cards, and pods get one of them: nn-workers on several nodes train at a fraction of the speed that you pay for; write one replica, or choose a2-ultragpu-8g", pool.MachineType)
		}
		if ok && pool.GPU != nil && j.NNWorker.Image == "" && GPUs(j.NNWorker.Resources) > 0 && !DefaultImageComputesOn(pool.GPU.Type) {
			p.Warn(j.At().Child("nnWorker", "image"), "the default image contains PyTorch 1.8, which does not support %s; write an image with a PyTorch version that does", pool.GPU.Type)
		}
	}
}

// severalCards matches machine types with network cards for GPUs (GKE, "Maximize GPU network bandwidth").
var severalCards = regexp.MustCompile(`^(a3-(high|mega|ultra)gpu-8g|a4x?-.*)$`)

// warnOfSecrets warns of Secrets and ConfigMaps that cannot exist before the first `pulumi up`.
func (s *Stack) warnOfSecrets(p *input.Problems) {
	warn := func(at *field.Path, kind, name string, optional *bool) {
		if name != "" && (optional == nil || !*optional) {
			p.WarnFirst(at, "the %s %s must be in the namespace persia, which the first `pulumi up` creates, and pods wait for it; create it with kubectl while `pulumi up` waits for them", kind, name)
		}
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		for k, secret := range j.ImagePullSecrets {
			warn(j.at.Child("imagePullSecrets").Index(k), "Secret", secret.Name, nil)
		}
		for _, env := range j.envs() {
			for k, e := range env.list {
				if from := e.ValueFrom; from != nil && from.SecretKeyRef != nil {
					warn(env.at.Index(k), "Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Optional)
				} else if from != nil && from.ConfigMapKeyRef != nil {
					warn(env.at.Index(k), "ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional)
				}
			}
		}
		for k, volume := range j.Volumes {
			if volume.Secret != nil {
				warn(j.at.Child("volumes").Index(k), "Secret", volume.Secret.SecretName, volume.Secret.Optional)
			} else if volume.ConfigMap != nil {
				warn(j.at.Child("volumes").Index(k), "ConfigMap", volume.ConfigMap.Name, volume.ConfigMap.Optional)
			}
		}
	}
}

// spotGrace is how many seconds pods have on a machine that Google preempts (GKE, "Spot VMs",
// "Termination and graceful shutdown of Spot VMs").
const spotGrace = 15

// warnOfSpot warns of the work that a job loses when Google preempts a machine.
func (s *Stack) warnOfSpot(p *input.Problems) {
	for _, c := range s.NATSClusters() {
		if pool, _ := s.Pool(c.NodePool); pool.Spot {
			p.Warn(c.PoolPath(field.NewPath(natsKey)), "pool %s has spot machines, and each time Google preempts one with a NATS server, jobs lose their connections; choose a pool without spot", pool.Name)
		}
	}
	if s.PEDL != nil {
		if pool, _ := s.Pool(s.PEDL.NodePool); pool.Spot {
			p.Warn(field.NewPath(pedlKey, "nodePool"), "pool %s has spot machines, and each time Google preempts one, PEDL is down; choose a pool without spot", pool.Name)
		}
	}
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			at, seconds := s.Jobs[i].At().Child(role.Field, "terminationGracePeriodSeconds"), role.TerminationGracePeriodSeconds
			if pool, _ := s.Pool(role.NodePool); pool.Spot && seconds > UsualGrace {
				p.Warn(at, "pool %s has spot machines, whose pods have %d s to end when Google preempts one, not %d; save checkpoints more often, or choose a pool without spot", pool.Name, spotGrace, seconds)
			}
		}
		if pool, _ := s.Pool(s.Jobs[i].EmbeddingParameterServer.NodePool); pool.Spot {
			p.Warn(s.Jobs[i].At().Child("embeddingParameterServer", "nodePool"), "pool %s has spot machines, and each time Google preempts one, the job loses its embeddings since the last checkpoint; choose a pool without spot", pool.Name)
		}
	}
}

// Operator are the settings of PERSIA's own operator, which the stack runs if a job has `engine:
// operator`.
type Operator struct {
	// Image is an image with PERSIA's Python package, persia-k8s-utils on the path, and python3.
	// Required if the operator runs.
	Image string `json:"image,omitempty"`
}

// operatorImageExample is an image for messages.
const operatorImageExample = "REGION-docker.pkg.dev/PROJECT/REPOSITORY/training@sha256:…"

// Check checks settings. Used is whether the operator runs a job.
func (s Operator) Check(p *input.Problems, path *field.Path, used bool) {
	at := path.Child("image")
	switch {
	case s.Image == "" && used:
		p.Required(at, "write the image of PERSIA's operator by its digest, like %s: examples/training/Dockerfile builds one, and for upstream's `docker buildx imagetools inspect persiaml/persia-cpu-runtime` shows the digest", operatorImageExample)
	case s.Image == "":
	case isLooseImage(s.Image):
		p.Invalid(at, s.Image, "may be another image tomorrow, and its program creates pods; write a digest or the tag of a version, like %s", operatorImageExample)
	default:
		checkImage(p, at, s.Image, operatorImageExample)
	}
}

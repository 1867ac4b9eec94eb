package config

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Job is a PERSIA training job. Its fields are named as in a PersiaJob; names of older releases of PERSIA work too.
type Job struct {
	// Manifest is a file with PersiaJobs, relative to the project's directory. Each becomes a job. The other fields
	// here override it, and a NatsCluster in it sets what persia:nats does not.
	Manifest string `json:"manifest,omitempty"`
	// Name is unique in the stack, and the prefix of the names of the job's objects. Name, the roles, and `persiaEnv`
	// are required without `manifest`.
	Name string `json:"name,omitempty"`
	// RunID names one run. Change it to train again from the start.
	RunID string `json:"runId,omitempty" default:"1" form:"label"`
	// Suspend removes all replicas of the job, so that their nodes can be released.
	Suspend bool `json:"suspend,omitempty"`
	// Engine is the controller that creates the pods: statefulset, jobset, or operator, which is PERSIA's own.
	Engine Engine `json:"engine,omitempty" default:"statefulset" enum:"statefulset,jobset,operator"`
	// Queue is the team in persia:queue in whose queue the job waits, with engine: jobset.
	Queue string `json:"queue,omitempty"`
	// Priority is a name in persia:queue. Default: the name default.
	Priority string `json:"priority,omitempty"`
	// Script starts the roles without persia-launcher, which images of older PERSIA releases do not have.
	Script *Script `json:"script,omitempty"`
	// NATS overrides settings of persia:nats.
	NATS NATSOverrides `json:"nats,omitempty"`
	// Env are environment variables that every role gets.
	Env       []corev1.EnvVar `json:"env,omitempty" unique:"name"`
	PersiaEnv PersiaEnv       `json:"persiaEnv,omitempty"`
	// NodePool is the node pool of roles that set none, or a list, best first.
	NodePool string `json:"nodePool,omitempty" list:"pools"`
	// Mounts are volumes of the stack that every role mounts.
	Mounts []Mount `json:"mounts,omitempty"`
	// Volumes are Kubernetes volumes for the `volumeMounts` of the roles.
	Volumes []corev1.Volume `json:"volumes,omitempty" unique:"name"`
	// Recovery is full or partial, where embedding parameter servers keep their memory when another replica fails, if
	// the script saves its dense model often.
	Recovery string `json:"recovery,omitempty" default:"full" enum:"full,partial"`
	// CheckpointSeconds is how long a checkpoint takes. With it and `hoursBetweenFailures`, the preview shows the
	// best interval.
	CheckpointSeconds int `json:"checkpointSeconds,omitempty" max:"86400"`
	// RestartSeconds is how long a new attempt takes until it trains, for that interval.
	RestartSeconds int `json:"restartSeconds,omitempty" default:"600" max:"86400"`
	// Checks measures the machine of each replica before an attempt, to name slow ones.
	Checks bool `json:"checks,omitempty" default:"true"`
	// EnableMetrics adds a Pushgateway to which the roles push metrics.
	EnableMetrics bool `json:"enableMetrics,omitempty" default:"true"`
	// LogLevel is one of trace, debug, info, warn and error.
	LogLevel string `json:"logLevel,omitempty" default:"info" enum:"trace,debug,info,warn,error"`
	// RestartPolicy is Never, OnFailure or Always, for pods that PERSIA's operator creates.
	RestartPolicy corev1.RestartPolicy `json:"restartPolicy,omitempty" default:"Never" enum:"Never,OnFailure,Always"`
	// ImagePullPolicy is Always, IfNotPresent or Never.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty" default:"Always" enum:"Always,IfNotPresent,Never"`
	// ImagePullSecrets are Secrets of the namespace persia with registry credentials.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty" unique:"name"`

	// NNWorker trains the dense neural network.
	NNWorker NNWorker `json:"nnWorker,omitempty"`
	// Dataloader reads the training data and feeds it to the other roles.
	Dataloader Role `json:"dataloader,omitempty"`
	// EmbeddingWorker looks embeddings up for nn-workers, and returns gradients.
	EmbeddingWorker Role `json:"embeddingWorker,omitempty"`
	// EmbeddingParameterServer stores the embeddings and updates them.
	EmbeddingParameterServer Role `json:"embeddingParameterServer,omitempty"`

	at       *field.Path // the path of the job in the stack file
	contract Contract
}

// Engine names the controller that creates the pods of a job.
type Engine string

// The engines. See [Job].
const (
	EngineStatefulSet Engine = "statefulset"
	EngineJobSet      Engine = "jobset"
	EngineOperator    Engine = "operator"
)

// Script describes how to start the roles without persia-launcher: Python scripts with an interpreter, and servers
// from the directory of their programs.
type Script struct {
	// Python is the absolute path of the interpreter in the containers.
	Python string `json:"python,omitempty" default:"/opt/conda/bin/python3" form:"directory"`
	// Runtime is the absolute path of the directory, in the containers, with persia-middleware-server and
	// persia-embedding-server.
	Runtime string `json:"runtime" form:"directory"`
	// Port is the port on which both programs listen.
	Port int `json:"port,omitempty" default:"23333" max:"65535"`
}

// PersiaEnv are the absolute paths, in the containers, of the files that a job runs.
type PersiaEnv struct {
	// GlobalConfig is PERSIA's global configuration, a YAML file.
	GlobalConfig string `json:"PERSIA_GLOBAL_CONFIG" form:"file"`
	// EmbeddingConfig is PERSIA's embedding configuration, a YAML file.
	EmbeddingConfig string `json:"PERSIA_EMBEDDING_CONFIG" form:"file"`
	// NNWorkerEntry is the Python script that an nn-worker runs.
	NNWorkerEntry string `json:"PERSIA_NN_WORKER_ENTRY" form:"file"`
	// DataloaderEntry is the Python script that a dataloader runs.
	DataloaderEntry string `json:"PERSIA_DATALOADER_ENTRY" form:"file"`
}

// Mount says where the containers of a job mount a volume of the stack.
type Mount struct {
	// Volume is the name of a volume of persia:storage.
	Volume string `json:"volume"`
	// MountPath is an absolute path in the containers.
	MountPath string `json:"mountPath" form:"directory"`
	// ReadOnly prevents the containers from writing to the volume.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Role describes the replicas of a role.
type Role struct {
	// Replicas is the number of pods.
	Replicas int `json:"replicas,omitempty" default:"1" max:"200000"`
	// NodePool is the node pool on which the replicas run, or a list, best first. Default: the job's.
	NodePool string `json:"nodePool,omitempty" list:"pools"`
	// Resources are the requests and limits of one replica, with at least cpu and memory. Requests default to the
	// limits.
	Resources corev1.ResourceRequirements `json:"resources"`
	// Image is the container image. Default: upstream's runtime image for the role.
	Image string `json:"image,omitempty"`
	// Env are environment variables of this role, over the job's.
	Env []corev1.EnvVar `json:"env,omitempty" unique:"name"`
	// Mounts are volumes that this role mounts besides the job's.
	Mounts []Mount `json:"mounts,omitempty"`
	// VolumeMounts mount the job's `volumes` by name.
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// TerminationGracePeriodSeconds is how long a replica may take to stop.
	TerminationGracePeriodSeconds int `json:"terminationGracePeriodSeconds,omitempty" default:"60" max:"86400"`

	mounted []mounted
	// state and checkpoints are the directories of the run's record and of all checkpoints, in the containers.
	state, checkpoints string
}

// NNWorker is the role whose replicas start several processes.
type NNWorker struct {
	Role `json:",inline"`
	// NprocPerNode is the number of training processes per replica. Default: its GPUs, or 1.
	NprocPerNode int `json:"nprocPerNode,omitempty" min:"1"`
}

// Partial reports whether servers keep their memory when another replica fails.
func (j *Job) Partial() bool { return j.Recovery == "partial" }

// At returns the path of the job in the stack file.
func (j *Job) At() *field.Path { return j.at }

// resolve fills in defaults that depend on other fields. It leaves an empty image, which means the default image of
// the role.
func (j *Job) resolve() {
	j.NNWorker.NprocPerNode = cmp.Or(j.NNWorker.NprocPerNode, max(1, GPUs(j.NNWorker.Resources)))
	for _, role := range j.Roles() {
		role.NodePool = cmp.Or(role.NodePool, j.NodePool)
	}
}

// MountsOf returns the mounts of a role: the job's, and its own.
func (j *Job) MountsOf(role Role) []Mount { return slices.Concat(j.Mounts, role.Mounts) }

// mountsVolume reports whether the role mounts one of the job's Volumes.
func (r *Role) mountsVolume(name string) bool {
	return slices.ContainsFunc(r.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
}

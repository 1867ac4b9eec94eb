package persiav1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/kube"
)

// PersiaJob is a training. The operator makes its pods once, when it first sees the
// job, and deletes them with it; a job that changes it does not look at again.
//
// +kubebuilder:resource:path=persiajobs
type PersiaJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PersiaJobSpec `json:"spec"`
}

// DeepCopyObject copies the object, as [runtime.Object] requires.
func (j *PersiaJob) DeepCopyObject() runtime.Object { return kube.Copy(j) }

// PersiaJobSpec has the command and the number of pods of each role. A role that is left out has none.
type PersiaJobSpec struct {
	PersiaEnv PersiaEnv `json:"persiaEnv"`
	// EnableMetrics adds a Pushgateway. The operator's default is true.
	EnableMetrics *bool `json:"enableMetrics,omitempty"`
	// Volumes are in every pod, mounted or not.
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// Env are environment variables of every role.
	Env []corev1.EnvVar `json:"env,omitempty"`
	// LogLevel is the environment variable LOG_LEVEL of every role. The operator's default is info.
	//
	// +kubebuilder:validation:Enum=trace;debug;info;warn;error
	LogLevel string `json:"logLevel,omitempty"`

	EmbeddingParameterServer *Role     `json:"embeddingParameterServer,omitempty"`
	EmbeddingWorker          *Role     `json:"embeddingWorker,omitempty"`
	NNWorker                 *NNWorker `json:"nnWorker,omitempty"`
	Dataloader               *Role     `json:"dataloader,omitempty"`

	// RestartPolicy applies to every pod. The operator's default is Never.
	//
	// +kubebuilder:validation:Enum=Always;OnFailure;Never
	RestartPolicy corev1.RestartPolicy `json:"restartPolicy,omitempty"`
	// ImagePullPolicy applies to every role. The operator's default is Always.
	//
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
}

// PersiaEnv holds paths inside the containers, each in the environment variable of its name.
type PersiaEnv struct {
	GlobalConfig    string `json:"PERSIA_GLOBAL_CONFIG"`
	EmbeddingConfig string `json:"PERSIA_EMBEDDING_CONFIG"`
	NNWorkerEntry   string `json:"PERSIA_NN_WORKER_ENTRY,omitempty"`
	DataloaderEntry string `json:"PERSIA_DATALOADER_ENTRY,omitempty"`
}

// Role is one of the parts of a training: pods that differ in their index only.
type Role struct {
	// Replicas is the number of pods.
	//
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`
	// Resources of the pod's only container.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// VolumeMounts mount the job's volumes.
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// Env are variables of this role, which win over the job's.
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Image is the container image. The operator has a default for each role.
	Image string `json:"image,omitempty"`
}

// NNWorker is the role that trains.
type NNWorker struct {
	Role `json:",inline"`
	// NprocPerNode is the number of processes of a pod.
	//
	// +kubebuilder:validation:Minimum=0
	NprocPerNode int32 `json:"nprocPerNode"`
}

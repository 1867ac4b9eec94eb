package config

import (
	corev1 "k8s.io/api/core/v1"
)

// Stack is one deployment: the keys of a stack file, decoded, completed with
// defaults and valid.
type Stack struct {
	// Project is the id of the Google Cloud project that everything is created
	// in.
	Project string

	Cluster      Cluster
	NodePools    []NodePool
	NVIDIADriver NVIDIADriver
	Volumes      []Volume
	NATS         NATS
	Jobs         []Job
}

// Cluster describes the GKE cluster and its network.
type Cluster struct {
	// Name is the cluster's name, and the prefix of everything around it: the
	// network, the router, the node identity.
	Name string `json:"name"`
	// Region holds the control plane, its replicas spread over the zones.
	Region string `json:"region"`
	// Zones are the zones of pools that name none.
	Zones []string `json:"zones"`
	// ReleaseChannel is RAPID, REGULAR, STABLE or EXTENDED. Default REGULAR.
	ReleaseChannel string `json:"releaseChannel,omitempty"`
	// DeletionProtection makes `pulumi destroy` refuse the cluster. Default true.
	DeletionProtection *bool `json:"deletionProtection,omitempty"`
	// AuthorizedNetworks may reach the control plane's public endpoint. None by
	// default: then only the cluster's own network reaches it.
	AuthorizedNetworks []AuthorizedNetwork `json:"authorizedNetworks,omitempty"`
	Network            Network             `json:"network,omitempty"`
	SystemPool         SystemPool          `json:"systemPool,omitempty"`
}

// AuthorizedNetwork is a range of addresses that may reach the control plane.
type AuthorizedNetwork struct {
	Name string `json:"name"`
	CIDR string `json:"cidr"`
}

// Network holds the address ranges of the cluster's own network, in CIDR
// notation. They must not overlap.
type Network struct {
	// Nodes is the subnetwork's primary range: an address a node. Default
	// 10.0.0.0/20, 4092 nodes.
	Nodes string `json:"nodes,omitempty"`
	// Pods is the secondary range for pods: GKE gives each node a /24 of it.
	// Default 10.16.0.0/14, 1024 nodes.
	Pods string `json:"pods,omitempty"`
	// Services is the secondary range for services. Default 10.1.0.0/20.
	Services string `json:"services,omitempty"`
	// ControlPlane is the control plane's own /28. Default 172.16.0.0/28.
	ControlPlane string `json:"controlPlane,omitempty"`
}

// SystemPool is the node pool of everything that is not training: GKE's own
// pods, the NATS operator, metrics gateways.
type SystemPool struct {
	// MachineType defaults to e2-standard-4.
	MachineType string `json:"machineType,omitempty"`
	// Nodes is the number of nodes over all of the cluster's zones, at least 2.
	// Default 2, or one a zone where the cluster has more zones.
	Nodes int `json:"nodes,omitempty"`
}

// NodePool is a group of like nodes.
type NodePool struct {
	Name        string `json:"name"`
	MachineType string `json:"machineType"`
	// Zones default to the cluster's. Nodes are spread over them evenly.
	Zones []string `json:"zones,omitempty"`
	// Nodes is a fixed number of nodes over all zones. Either it or Autoscaling
	// is given.
	Nodes *int `json:"nodes,omitempty"`
	// Autoscaling lets GKE choose the number of nodes.
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`
	// GPU makes the pool a GPU pool.
	GPU *GPU `json:"gpu,omitempty"`
	// ImageType is COS_CONTAINERD or UBUNTU_CONTAINERD. Default COS_CONTAINERD,
	// or for a GPU pool what the stack's NVIDIA driver needs.
	ImageType string `json:"imageType,omitempty"`
	Disk      Disk   `json:"disk,omitempty"`
	// Labels are Kubernetes labels of the nodes.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints keep pods away that do not tolerate them. Roles and NATS servers
	// tolerate the taints of the pool that they are assigned to.
	Taints []Taint `json:"taints,omitempty"`
}

// Autoscaling bounds the number of nodes of a pool, over all of its zones.
type Autoscaling struct {
	MinNodes int `json:"minNodes"`
	MaxNodes int `json:"maxNodes"`
}

// GPU is what a node of a GPU pool carries.
type GPU struct {
	// Type is the accelerator's name at Compute Engine, like nvidia-tesla-a100.
	Type string `json:"type"`
	// Count is the number of GPUs a node.
	Count int `json:"count"`
}

// Disk is the boot disk of a node.
type Disk struct {
	// Type is pd-standard, pd-balanced, pd-ssd or hyperdisk-balanced. Default
	// pd-balanced, or hyperdisk-balanced for machines that take nothing else.
	Type string `json:"type,omitempty"`
	// SizeGB is the size in GB. Default 100.
	SizeGB int `json:"sizeGb,omitempty"`
}

// Taint is a Kubernetes taint in Kubernetes' own spelling.
type Taint struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect corev1.TaintEffect `json:"effect"`
}

// Installer says who puts the NVIDIA driver on the nodes.
type Installer string

// The installers. GKE's own and a DaemonSet exclude each other, so that a stack
// has exactly one for all of its GPU pools.
const (
	// InstallerManaged leaves the driver to GKE.
	InstallerManaged Installer = "managed"
	// InstallerUbuntu is NVIDIA's installer DaemonSet for nodes with Ubuntu.
	InstallerUbuntu Installer = "ubuntu-daemonset"
	// InstallerCOS is the installer DaemonSet for Container-Optimized OS.
	InstallerCOS Installer = "cos-daemonset"
)

// NVIDIADriver is the one choice of how GPU nodes get their driver.
type NVIDIADriver struct {
	Installer Installer `json:"installer"`
	// Version is DEFAULT (the default) or LATEST with the managed installer, a
	// driver version like 550.90.12 with the DaemonSet for Ubuntu (default: the
	// image's own), and must be absent for Container-Optimized OS, whose image
	// decides.
	Version string `json:"version,omitempty"`
}

// Volume is a checkpoint volume: a PersistentVolume and the claim that binds to
// it, in the namespace of the jobs. Exactly one source is given.
type Volume struct {
	// Name is the PersistentVolume's name.
	Name string `json:"name"`
	// Claim is the PersistentVolumeClaim's name. Default Name with "-claim".
	Claim string `json:"claim,omitempty"`
	// Size is a quantity like 10Gi.
	Size string `json:"size"`
	// AccessModes default to ReadWriteMany, or ReadWriteOnce for a hostPath.
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
	// MountOptions are passed on to the driver.
	MountOptions []string `json:"mountOptions,omitempty"`

	HostPath *HostPath `json:"hostPath,omitempty"`
	GCSFuse  *GCSFuse  `json:"gcsFuse,omitempty"`
}

// HostPath is a directory of the node: for a stack of one node, or the sandbox.
type HostPath struct {
	Path string `json:"path"`
}

// GCSFuse is an existing Cloud Storage bucket, mounted through Cloud Storage
// FUSE. The identity of the jobs is granted its objects.
type GCSFuse struct {
	Bucket string `json:"bucket"`
}

// NATS is the NATS cluster that carries PERSIA's messages.
type NATS struct {
	// Name is the NatsCluster's name and so that of its client service. Default
	// persia-nats-service.
	Name string `json:"name,omitempty"`
	// Size is the number of servers.
	Size int `json:"size"`
	// Version is the release of nats-server. Default 2.10.22.
	Version string `json:"version,omitempty"`
	// MaxPayload is the largest message in bytes. Default 52428800, which PERSIA
	// needs; nats-server accepts at most 67108864.
	MaxPayload int `json:"maxPayload,omitempty"`
	// NodePool carries the servers. Default: the system pool.
	NodePool string `json:"nodePool,omitempty"`
	// Resources are those of one server.
	Resources corev1.ResourceRequirements `json:"resources"`
}

// Job is a PERSIA training. Its fields are named as those of a PersiaJob.
type Job struct {
	// Name is unique in the stack and the prefix of the job's objects.
	Name string `json:"name"`
	// Env is given to every role.
	Env       []corev1.EnvVar `json:"env,omitempty"`
	PersiaEnv PersiaEnv       `json:"persiaEnv"`
	// Mounts are the stack's volumes that every role mounts.
	Mounts []Mount `json:"mounts,omitempty"`
	// EnableMetrics adds a Pushgateway that the roles push to. Default true.
	EnableMetrics *bool `json:"enableMetrics,omitempty"`
	// LogLevel is trace, debug, info, warn or error. Default info.
	LogLevel string `json:"logLevel,omitempty"`
	// ImagePullPolicy is Always, IfNotPresent or Never. Default Always.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	NNWorker                 NNWorker `json:"nnWorker"`
	Dataloader               Role     `json:"dataloader"`
	EmbeddingWorker          Role     `json:"embeddingWorker"`
	EmbeddingParameterServer Role     `json:"embeddingParameterServer"`
}

// PersiaEnv holds the paths, inside the containers, of what a job runs.
type PersiaEnv struct {
	GlobalConfig    string `json:"PERSIA_GLOBAL_CONFIG"`
	EmbeddingConfig string `json:"PERSIA_EMBEDDING_CONFIG"`
	NNWorkerEntry   string `json:"PERSIA_NN_WORKER_ENTRY"`
	DataloaderEntry string `json:"PERSIA_DATALOADER_ENTRY"`
}

// Mount is where a volume of the stack appears in the containers of a job.
type Mount struct {
	// Volume is the name of one of the stack's volumes.
	Volume    string `json:"volume"`
	MountPath string `json:"mountPath"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
}

// Role is one of the four parts of a PERSIA job: how many replicas, where and
// how large.
type Role struct {
	Replicas int `json:"replicas"`
	// NodePool is the pool that the replicas are pinned to.
	NodePool string `json:"nodePool"`
	// Resources are those of one replica. What is requested defaults to the
	// limits, as in Kubernetes.
	Resources corev1.ResourceRequirements `json:"resources"`
	// Image defaults to upstream's runtime image of the role.
	Image string `json:"image,omitempty"`
	// Env is the role's own, and wins over the job's.
	Env []corev1.EnvVar `json:"env,omitempty"`
}

// NNWorker is the trainer: a Role whose replicas start several processes.
type NNWorker struct {
	Role `json:",inline"`
	// NprocPerNode is the number of training processes a replica. Default: the
	// number of GPUs that a replica asks for, or 1.
	NprocPerNode int `json:"nprocPerNode,omitempty"`
}

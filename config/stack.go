package config

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/nats"
)

// Stack is one deployment: the keys of a stack file, decoded, completed with
// defaults and valid.
//
// Besides json, the fields here and below it have tags for package reference:
// values lists the only texts that a field may have, and form is quantity for a
// text that is one.
type Stack struct {
	// Project is the id of the Google Cloud project that everything is created
	// in. On an existing cluster it is left out.
	Project string

	Cluster      Cluster
	MachineTypes map[string]MachineType
	NodePools    []NodePool
	NVIDIADriver NVIDIADriver
	Volumes      []Volume
	NATS         nats.Settings
	Jobs         []Job
	PEDL         *PEDL

	// pathOf is the path at which the user wrote what the program has at a path.
	pathOf func(*field.Path) string
}

// Cluster is the GKE cluster and its network: one that is created, or with
// Existing one that is there and of which nothing else is said here.
type Cluster struct {
	// Name is the cluster's name, and the prefix of everything around it: the
	// network, the router, the node identity.
	Name string `json:"name"`
	// Existing is a cluster that is there already. Nothing of Google Cloud is
	// created or changed then, and of the fields here only Name is given too.
	Existing *ExistingCluster `json:"existing,omitempty"`
	// Region is a region of Google Cloud, like us-central1. The control plane's
	// replicas are spread over its zones.
	Region string `json:"region"`
	// Zones are zones of the region, like us-central1-a: those of the pools that
	// name none.
	Zones []string `json:"zones"`
	// ReleaseChannel is RAPID, REGULAR or STABLE. Default REGULAR.
	ReleaseChannel string `json:"releaseChannel,omitempty" values:"RAPID,REGULAR,STABLE"`
	// DeletionProtection makes Pulumi and GKE refuse to delete the cluster, and
	// Pulumi refuse to delete or replace its node pools. Default true. To lift
	// it, set it to false and run `pulumi up` first.
	DeletionProtection *bool       `json:"deletionProtection,omitempty"`
	Maintenance        Maintenance `json:"maintenance,omitempty"`

	// PrivateNodes keeps public addresses from the nodes, which reach the
	// internet through Cloud NAT. Default true. It cannot be changed later.
	PrivateNodes *bool `json:"privateNodes,omitempty"`
	// PrivateEndpoint takes the public endpoint away from the control plane of
	// private nodes. Pulumi must then run inside the network. Default false.
	PrivateEndpoint bool `json:"privateEndpoint,omitempty"`
	// AuthorizedNetworks are the networks that may reach the control plane. None
	// by default: then only the cluster's own network reaches it.
	AuthorizedNetworks []AuthorizedNetwork `json:"authorizedNetworks,omitempty"`
	Network            Network             `json:"network,omitempty"`
	// DataplaneV2 is GKE's datapath on eBPF, which enforces network policies.
	// Default true. It cannot be changed later.
	DataplaneV2 *bool `json:"dataplaneV2,omitempty"`
	// DNS is CLOUD_DNS, served by every node, or KUBE_DNS, served by pods.
	// Default CLOUD_DNS.
	DNS string `json:"dns,omitempty" values:"CLOUD_DNS,KUBE_DNS"`

	// WorkloadIdentity gives pods identities of their own at Google Cloud.
	// Default true. Without it pods act as the node does.
	WorkloadIdentity *bool `json:"workloadIdentity,omitempty"`
	// NodeRoles are IAM roles of the project that nodes hold beside the two that
	// they need, to write logs and metrics and to pull images. Default none.
	NodeRoles []string `json:"nodeRoles,omitempty"`
	// ShieldedNodes proves that a node is a machine of the cluster. Default true.
	ShieldedNodes *bool `json:"shieldedNodes,omitempty"`
	// BinaryAuthorization admits only images that the project's policy allows.
	// Default true.
	BinaryAuthorization *bool `json:"binaryAuthorization,omitempty"`
	// SecurityPosture is BASIC, which audits workloads, or DISABLED. Default
	// BASIC.
	SecurityPosture string     `json:"securityPosture,omitempty" values:"BASIC,DISABLED"`
	Encryption      Encryption `json:"encryption,omitempty"`

	SystemPool SystemPool `json:"systemPool,omitempty"`
	// AutoscalingProfile is OPTIMIZE_UTILIZATION, which removes idle nodes soon,
	// or BALANCED. Default OPTIMIZE_UTILIZATION.
	AutoscalingProfile string `json:"autoscalingProfile,omitempty" values:"OPTIMIZE_UTILIZATION,BALANCED"`
	// ImageStreaming starts containers before their image is whole, on nodes with
	// Container-Optimized OS. Default true. A change replaces their pools.
	ImageStreaming *bool      `json:"imageStreaming,omitempty"`
	CSIDrivers     CSIDrivers `json:"csiDrivers,omitempty"`
	Monitoring     Monitoring `json:"monitoring,omitempty"`
	// CostManagement breaks the bill down by namespace and label. Default true.
	CostManagement *bool  `json:"costManagement,omitempty"`
	Backup         Backup `json:"backup,omitempty"`
}

// ExistingCluster is how a cluster that is there already is reached. At least one
// of Kubeconfig and Context is given.
type ExistingCluster struct {
	// Kubeconfig is the absolute path of a kubeconfig file. Default: the file of
	// the environment variable KUBECONFIG, or ~/.kube/config.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context is a context of the kubeconfig. Default: its current one.
	Context string `json:"context,omitempty"`
	// SystemPool is the node pool, one of the stack file's, of everything that is
	// not training.
	SystemPool string `json:"systemPool"`
}

// Maintenance is when GKE may work on the cluster.
type Maintenance struct {
	// StartTime is when the daily window of four hours begins, like 03:00, in
	// UTC. Default 03:00.
	StartTime  string      `json:"startTime,omitempty"`
	Exclusions []Exclusion `json:"exclusions,omitempty"`
}

// Exclusion is a time in which neither the minor version of the control plane nor
// any node is upgraded: that of a long training.
type Exclusion struct {
	// Name tells the exclusion from others.
	Name string `json:"name"`
	// Start is when it begins, in UTC, like 2026-12-01T00:00:00Z.
	Start string `json:"start"`
	// End is when it ends, at most 180 days after Start.
	End string `json:"end"`
}

// AuthorizedNetwork is a range of addresses that may reach the control plane.
type AuthorizedNetwork struct {
	// Name says whose network it is, like office.
	Name string `json:"name"`
	// CIDR is the range in CIDR notation, like 203.0.113.0/24.
	CIDR string `json:"cidr"`
}

// Network holds the address ranges of the cluster's own network, in CIDR
// notation. They must not overlap.
type Network struct {
	// Nodes is the subnetwork's primary range: an address a node. Default
	// 10.0.0.0/20, for 4092 nodes, or larger where the pools have more.
	Nodes string `json:"nodes,omitempty"`
	// Pods is the secondary range for pods, of which GKE gives each node a block
	// of twice its maxPodsPerNode: a /24 for 110. Default 10.64.0.0/14, for 1024
	// such nodes, or larger where the pools need more.
	Pods string `json:"pods,omitempty"`
	// Services is the secondary range for services. Default 10.1.0.0/20.
	Services string `json:"services,omitempty"`
	// ControlPlane is the control plane's own /28, which it has with private nodes
	// only. Default 172.16.0.0/28.
	ControlPlane string `json:"controlPlane,omitempty"`
}

// Encryption names keys of Cloud KMS, as
// projects/P/locations/L/keyRings/R/cryptoKeys/K. GKE is granted their use.
// Without one, Google's own keys encrypt.
type Encryption struct {
	// Secrets encrypts the Secrets of the cluster, beside the encryption of all
	// its state. The key is in the cluster's region.
	Secrets string `json:"secrets,omitempty"`
	// BootDisks encrypts the boot disks of all nodes. The key is in the cluster's
	// region, or global. A change replaces all pools.
	BootDisks string `json:"bootDisks,omitempty"`
}

// SystemPool is the node pool of everything that is not training: GKE's own
// pods, the NATS operator, metrics gateways.
type SystemPool struct {
	// MachineType is a machine type without GPUs. Default e2-standard-4.
	MachineType string `json:"machineType,omitempty"`
	// Nodes is the number of nodes over all of the cluster's zones: at least 2, or 1
	// in a cluster with deletionProtection: false. Default 2, or one a zone where the
	// cluster has more zones.
	Nodes int `json:"nodes,omitempty"`
}

// CSIDrivers are GKE's storage drivers. Each is there by default.
type CSIDrivers struct {
	// PersistentDisk is the driver of Compute Engine's disks. Default true.
	PersistentDisk *bool `json:"persistentDisk,omitempty"`
	// Filestore is the driver of managed NFS shares. Default true.
	Filestore *bool `json:"filestore,omitempty"`
	// GCSFuse is the driver of Cloud Storage buckets, which volumes over a bucket
	// need. Default true.
	GCSFuse *bool `json:"gcsFuse,omitempty"`
}

// Monitoring is what GKE writes to Cloud Monitoring.
type Monitoring struct {
	// Components are the parts of GKE whose metrics are kept. Default: all of
	// SYSTEM_COMPONENTS, STORAGE, HPA, POD, DAEMONSET, DEPLOYMENT, STATEFULSET,
	// CADVISOR, KUBELET and DCGM, the last for GPUs. The first is needed with any
	// other; [] is none.
	Components []string `json:"components,omitempty" values:"SYSTEM_COMPONENTS,STORAGE,HPA,POD,DAEMONSET,DEPLOYMENT,STATEFULSET,CADVISOR,KUBELET,DCGM"`
	// ManagedPrometheus collects what pods export. Default true.
	ManagedPrometheus *bool `json:"managedPrometheus,omitempty"`
}

// Backup is Backup for GKE.
type Backup struct {
	// Agent runs what backups need inside the cluster. Default true.
	Agent *bool `json:"agent,omitempty"`
	// Plan makes backups. Default none: everything in the cluster is in the stack
	// file, and checkpoints are outside. Backups outlive the stack, and so does
	// the plan: one that is removed here is left to be deleted by hand.
	Plan *BackupPlan `json:"plan,omitempty"`
}

// BackupPlan backs up all namespaces, with their volumes and Secrets.
type BackupPlan struct {
	// Schedule is when, in cron's notation and UTC, like `0 4 * * *`.
	Schedule string `json:"schedule"`
	// RetainDays is how long a backup is kept. Default 7.
	RetainDays int `json:"retainDays,omitempty"`
}

// MachineType is what the program cannot know of a machine type, given by the name
// of the type. The shape, which is CPUs, Memory and GPU, is given for types that
// are not in its catalogue, and for those only.
type MachineType struct {
	// CPUs is the number of vCPUs.
	CPUs int `json:"cpus,omitempty"`
	// Memory is a quantity like 240Gi.
	Memory string `json:"memory,omitempty" form:"quantity"`
	// GPU is what the machine comes with.
	GPU *MachineGPU `json:"gpu,omitempty"`
	// HourlyPrice is what a machine costs an hour, with its GPUs, in a currency of
	// yours. The stack's cost an hour is shown once all of its machines have a
	// price.
	HourlyPrice float64 `json:"hourlyPrice,omitempty"`
	// SpotHourlyPrice is what a spot machine costs an hour.
	SpotHourlyPrice float64 `json:"spotHourlyPrice,omitempty"`
}

// MachineGPU is what a machine comes with.
type MachineGPU struct {
	// Type is the accelerator's name at Compute Engine, like nvidia-b200.
	Type string `json:"type"`
	// Count is the number of GPUs of a machine.
	Count int `json:"count"`
}

// NodePool is a group of like nodes. On an existing cluster it describes a pool
// that is there, by Name, MachineType, Nodes or Autoscaling, Spot, GPU,
// MaxPodsPerNode and Taints.
//
// The tag change of a field says what Google Cloud does when the field is
// changed: update keeps the pool, though its nodes may be upgraded one after the
// other, and replace deletes it with all of its nodes and makes another.
type NodePool struct {
	// Name is the pool's name, which roles and NATS servers are assigned by. The
	// name system is taken.
	Name string `json:"name" change:"replace"`
	// MachineType is a predefined machine type of Compute Engine, like
	// n2-highmem-32, that is not shared-core, or one that machineTypes describes.
	MachineType string `json:"machineType" change:"update"`
	// Zones are those of the nodes, which are spread over them evenly. Default:
	// the cluster's.
	Zones []string `json:"zones,omitempty" change:"update"`
	// Nodes is a fixed number of nodes over all zones. Either it or Autoscaling
	// is given.
	Nodes *int `json:"nodes,omitempty" change:"update"`
	// Autoscaling lets GKE choose the number of nodes.
	Autoscaling *Autoscaling `json:"autoscaling,omitempty" change:"update"`
	// Spot takes nodes that cost less and may be taken back at any time. The
	// nodes get the label and the taint cloud.google.com/gke-spot=true. Default
	// false.
	Spot bool `json:"spot,omitempty" change:"replace"`
	// QueuedProvisioning gives nodes only to pods that come with a
	// ProvisioningRequest, all of them at once. Roles come without. Default false.
	QueuedProvisioning bool `json:"queuedProvisioning,omitempty" change:"replace"`
	// Reservation is a reservation of Compute Engine that the nodes are taken
	// from: its name, or projects/P/reservations/R of another project.
	Reservation string `json:"reservation,omitempty" change:"replace"`
	// CompactPlacement puts the nodes close to each other, in one zone. Default
	// false.
	CompactPlacement bool `json:"compactPlacement,omitempty" change:"replace"`
	// GPU makes the pool a GPU pool. It is required where the machine type comes
	// with GPUs.
	GPU *GPU `json:"gpu,omitempty" change:"replace"`
	// ImageType is COS_CONTAINERD or UBUNTU_CONTAINERD. Default COS_CONTAINERD,
	// or for a GPU pool what the stack's NVIDIA driver needs. Image streaming comes
	// and goes with it, for which Google Cloud makes another pool.
	ImageType string `json:"imageType,omitempty" change:"replace" values:"COS_CONTAINERD,UBUNTU_CONTAINERD"`
	Disk      Disk   `json:"disk,omitempty" change:"update"`
	// LocalSSDs is a number of local SSDs of 375 GB that hold ephemeral storage
	// instead of the boot disk. Default 0.
	LocalSSDs int `json:"localSsds,omitempty" change:"replace"`
	// GVNIC is Google's own network interface, which is faster. Default true.
	GVNIC *bool `json:"gvnic,omitempty" change:"replace"`
	// FastSocket speeds NCCL up, between nodes with GPUs and Container-Optimized
	// OS. Default false.
	FastSocket bool `json:"fastSocket,omitempty" change:"update"`
	// SecureBoot refuses kernel modules that are not signed. Default true, but
	// false for GPU pools whose driver is installed by a DaemonSet, since that
	// driver is not signed.
	SecureBoot *bool `json:"secureBoot,omitempty" change:"replace"`
	// MaxPodsPerNode is from 8 to 256. It decides how many addresses a node
	// takes. Default 110.
	MaxPodsPerNode int     `json:"maxPodsPerNode,omitempty" change:"replace"`
	Upgrade        Upgrade `json:"upgrade,omitempty" change:"update"`
	// Labels are Kubernetes labels of the nodes.
	Labels map[string]string `json:"labels,omitempty" change:"update"`
	// Taints are Kubernetes taints, which keep pods away that do not tolerate
	// them. Roles and NATS servers tolerate those of the pool that they are
	// assigned to.
	Taints []Taint `json:"taints,omitempty" change:"update"`
}

// Autoscaling bounds the number of nodes of a pool, over all of its zones.
type Autoscaling struct {
	// MinNodes is the number of nodes that are always there. It may be 0.
	MinNodes int `json:"minNodes"`
	// MaxNodes is the number of nodes that are there at most.
	MaxNodes int `json:"maxNodes"`
	// LocationPolicy is ANY, which takes nodes in whichever zone has them, or
	// BALANCED, which keeps the zones level. Default ANY for GPU pools and spot,
	// BALANCED for others.
	LocationPolicy string `json:"locationPolicy,omitempty" values:"ANY,BALANCED"`
}

// GPU is what a node of a GPU pool carries.
type GPU struct {
	// Type is the accelerator's name at Compute Engine, like nvidia-tesla-a100.
	Type string `json:"type"`
	// Count is the number of GPUs a node.
	Count int `json:"count"`
	// Partition divides each GPU into instances of this size (MIG), like 1g.5gb.
	// Each of them counts as one nvidia.com/gpu.
	Partition string `json:"partition,omitempty"`
	// Sharing lets several containers use one GPU, or one partition.
	Sharing *GPUSharing `json:"sharing,omitempty"`
}

// GPUSharing lets containers share a GPU. Each place counts as one
// nvidia.com/gpu, and a container asks for one.
type GPUSharing struct {
	// Strategy is TIME_SHARING or MPS.
	Strategy string `json:"strategy" values:"TIME_SHARING,MPS"`
	// MaxClients is how many containers share a GPU, from 2 to 48.
	MaxClients int `json:"maxClients"`
}

// Disk is the boot disk of a node.
type Disk struct {
	// Type is one of pd-standard, pd-balanced, pd-ssd and hyperdisk-balanced.
	// Default pd-balanced, or hyperdisk-balanced for machines that take nothing
	// else.
	Type string `json:"type,omitempty" values:"pd-standard,pd-balanced,pd-ssd,hyperdisk-balanced"`
	// SizeGB is the size in GB. Default 100.
	SizeGB int `json:"sizeGb,omitempty"`
}

// Upgrade is how nodes are upgraded.
type Upgrade struct {
	// Strategy is SURGE, node by node, or BLUE_GREEN, which needs every node
	// twice. Default SURGE.
	Strategy string `json:"strategy,omitempty" values:"SURGE,BLUE_GREEN"`
	// MaxSurge is the number of nodes that are there beyond the pool's during a
	// SURGE. Default 1, but 0 for GPU pools and reservations, whose machines are
	// scarce.
	MaxSurge *int `json:"maxSurge,omitempty"`
	// MaxUnavailable is the number of nodes that may be missing during a SURGE.
	// Default 0, or 1 where MaxSurge is 0.
	MaxUnavailable *int `json:"maxUnavailable,omitempty"`
	// BatchNodes is the number of nodes that are drained at once in a BLUE_GREEN
	// upgrade. Default 1.
	BatchNodes int `json:"batchNodes,omitempty"`
	// SoakSeconds is how long the old nodes are kept after a BLUE_GREEN upgrade.
	// Default 3600.
	SoakSeconds int `json:"soakSeconds,omitempty"`
}

// Taint is a Kubernetes taint in Kubernetes' own spelling.
type Taint struct {
	// Key is the taint's key, like example.com/dedicated.
	Key string `json:"key"`
	// Value is the taint's value. It may be empty.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect corev1.TaintEffect `json:"effect" values:"NoSchedule,PreferNoSchedule,NoExecute"`
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
	// Version is DEFAULT or LATEST with managed, by default DEFAULT; a driver
	// version like 550.90.12 with ubuntu-daemonset, by default the image's own; and
	// left out with cos-daemonset, since the image decides.
	Version string `json:"version,omitempty"`
}

// Job is a PERSIA training. Its fields are named as those of a PersiaJob, and the
// names that older releases of PERSIA have for some of them are understood too.
type Job struct {
	// The tag beside is on fields that no PersiaJob has. With a manifest, they stand
	// beside it in the stack file.

	// Manifest is a file of PersiaJobs, relative to the project's directory. Each
	// of them is a job, and the other fields here are added to it and win over its
	// own. A NatsCluster in the file gives what persia:nats, {} for example, leaves
	// open.
	Manifest string `json:"manifest,omitempty" beside:"manifest"`
	// Name is unique in the stack and the prefix of the job's objects. It, the
	// roles and PersiaEnv are required where no Manifest has them.
	Name string `json:"name,omitempty" beside:"manifest"`
	// RunID names one run of the training. A replica that has finished with success
	// stays finished in this run: another name starts the training over. Default
	// "1".
	RunID string `json:"runId,omitempty" beside:"manifest"`
	// Suspend removes all replicas of the job, so that their nodes can go: once the
	// training has finished, or until it goes on. Default false.
	Suspend bool `json:"suspend,omitempty" beside:"manifest"`
	// Engine is what makes the job's pods: statefulset, which is this program, or
	// operator, which is PERSIA's own. Default statefulset.
	Engine Engine `json:"engine,omitempty" beside:"manifest"`
	// Script starts the roles with a script instead of persia-launcher, which the
	// images of older releases of PERSIA lack.
	Script *Script `json:"script,omitempty" beside:"manifest"`
	// NATS says where the job's own NATS differs from persia:nats.
	NATS nats.Overrides `json:"nats,omitempty" beside:"manifest"`
	// Env are environment variables that every role gets.
	Env       []corev1.EnvVar `json:"env,omitempty"`
	PersiaEnv PersiaEnv       `json:"persiaEnv,omitempty"`
	// NodePool is the pool of the roles that name none.
	NodePool string `json:"nodePool,omitempty" beside:"manifest"`
	// Mounts are the stack's volumes that every role mounts.
	Mounts []Mount `json:"mounts,omitempty" beside:"manifest"`
	// Volumes are volumes of Kubernetes, of any kind, for the volumeMounts of the
	// roles.
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// EnableMetrics adds a Pushgateway that the roles push to. Default true.
	EnableMetrics *bool `json:"enableMetrics,omitempty"`
	// LogLevel is one of trace, debug, info, warn and error. Default info.
	LogLevel string `json:"logLevel,omitempty" values:"trace,debug,info,warn,error"`
	// RestartPolicy is what becomes of a pod of PERSIA's operator that has ended:
	// Never, OnFailure or Always. Default Never. The engine statefulset starts a
	// replica that failed again, and one that finished never, whatever is written
	// here.
	RestartPolicy corev1.RestartPolicy `json:"restartPolicy,omitempty" values:"Never,OnFailure,Always"`
	// ImagePullPolicy is Always, IfNotPresent or Never. Default Always.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty" values:"Always,IfNotPresent,Never"`
	// ImagePullSecrets are Secrets of the namespace persia with the credentials of
	// registries.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty" beside:"manifest"`
	// AutomountServiceAccountToken lets the containers talk to the Kubernetes API,
	// with what rights the service account persia is given. Default false.
	AutomountServiceAccountToken bool `json:"automountServiceAccountToken,omitempty" beside:"manifest"`

	// NNWorker trains the dense neural network.
	NNWorker NNWorker `json:"nnWorker,omitempty"`
	// Dataloader reads the training data and feeds it to the other roles.
	Dataloader Role `json:"dataloader,omitempty"`
	// EmbeddingWorker fetches embeddings for the trainers, and takes their
	// gradients back.
	EmbeddingWorker Role `json:"embeddingWorker,omitempty"`
	// EmbeddingParameterServer holds the embeddings and updates them.
	EmbeddingParameterServer Role `json:"embeddingParameterServer,omitempty"`

	// at is where the job stands.
	at *field.Path
}

// Engine is what makes the pods of a job.
type Engine string

// The engines.
const (
	// EngineStatefulSet makes a StatefulSet of each role.
	EngineStatefulSet Engine = "statefulset"
	// EngineOperator leaves the job to PERSIA's operator, as a PersiaJob.
	EngineOperator Engine = "operator"
)

// Script is how the roles are started where there is no persia-launcher: the
// Python scripts by Python, the servers from the directory of their programs.
type Script struct {
	// Python is the absolute path of the interpreter in the containers. Default
	// /opt/conda/bin/python3.
	Python string `json:"python,omitempty"`
	// Runtime is the absolute path of the directory, in the containers, with
	// persia-middleware-server and persia-embedding-server.
	Runtime string `json:"runtime"`
	// Port is where both servers listen. Default 23333.
	Port int `json:"port,omitempty"`
}

// PersiaEnv holds the absolute paths, inside the containers, of what a job runs.
type PersiaEnv struct {
	// GlobalConfig is PERSIA's global configuration, a YAML file.
	GlobalConfig string `json:"PERSIA_GLOBAL_CONFIG"`
	// EmbeddingConfig is PERSIA's embedding configuration, a YAML file.
	EmbeddingConfig string `json:"PERSIA_EMBEDDING_CONFIG"`
	// NNWorkerEntry is the Python script that a trainer runs.
	NNWorkerEntry string `json:"PERSIA_NN_WORKER_ENTRY"`
	// DataloaderEntry is the Python script that a data loader runs.
	DataloaderEntry string `json:"PERSIA_DATALOADER_ENTRY"`
}

// Mount is where a volume of the stack appears in the containers of a job.
type Mount struct {
	// Volume is the name of one of the stack's volumes.
	Volume string `json:"volume"`
	// MountPath is an absolute path in the containers.
	MountPath string `json:"mountPath"`
	// ReadOnly keeps the containers from writing to the volume. Default false.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Role is one of the four parts of a PERSIA job: how many replicas, where and
// how large.
type Role struct {
	// Replicas is the number of pods of the role, at least 1.
	Replicas int `json:"replicas"`
	// NodePool is the pool that the replicas are pinned to. Default: the job's.
	NodePool string `json:"nodePool,omitempty" beside:"manifest"`
	// Resources are what one replica asks for and may use, cpu and memory at least.
	// What is requested defaults to the limits, as in Kubernetes.
	Resources corev1.ResourceRequirements `json:"resources"`
	// Image is the container image. Default: upstream's runtime image of the role.
	Image string `json:"image,omitempty"`
	// Env are environment variables of this role, which win over the job's.
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Mounts are volumes that this role mounts beside the job's.
	Mounts []Mount `json:"mounts,omitempty" beside:"manifest"`
	// VolumeMounts mount the job's Volumes, by their names.
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// TerminationGracePeriodSeconds is how long a replica that is told to end may
	// take, to write a checkpoint for example. Default 60.
	TerminationGracePeriodSeconds int `json:"terminationGracePeriodSeconds,omitempty" beside:"manifest"`
}

// NNWorker is the trainer: a role whose replicas start several processes.
type NNWorker struct {
	Role `json:",inline"`
	// NprocPerNode is the number of training processes a replica. Default: the
	// number of GPUs that a replica asks for, or 1.
	NprocPerNode int `json:"nprocPerNode,omitempty"`
}

package config

import (
	corev1 "k8s.io/api/core/v1"
)

// Stack is one deployment: the keys of a stack file, decoded, completed with
// defaults and valid.
type Stack struct {
	// Project is the id of the Google Cloud project that everything is created
	// in. On an existing cluster it is left out.
	Project string

	Cluster      Cluster
	MachineTypes map[string]MachineType
	NodePools    []NodePool
	NVIDIADriver NVIDIADriver
	Volumes      []Volume
	NATS         NATS
	Jobs         []Job
}

// Cluster describes the GKE cluster and its network: one that is created, or
// with Existing one that is there and of which nothing else is said here.
type Cluster struct {
	// Name is the cluster's name, and the prefix of everything around it: the
	// network, the router, the node identity.
	Name string `json:"name"`
	// Existing is a cluster that is there already. Nothing of Google Cloud is
	// created or changed then, and of the fields here only Name is given too.
	Existing *ExistingCluster `json:"existing,omitempty"`
	// Region holds the control plane, its replicas spread over the zones.
	Region string `json:"region"`
	// Zones are the zones of pools that name none.
	Zones []string `json:"zones"`
	// ReleaseChannel is RAPID, REGULAR, STABLE or EXTENDED. Default REGULAR.
	ReleaseChannel string `json:"releaseChannel,omitempty"`
	// DeletionProtection makes Pulumi and GKE refuse to delete the cluster, and
	// Pulumi refuse to delete or replace its node pools. Default true. To lift
	// it, set it to false and run `pulumi up` first.
	DeletionProtection *bool       `json:"deletionProtection,omitempty"`
	Maintenance        Maintenance `json:"maintenance,omitempty"`

	// PrivateNodes keeps public addresses from the nodes, which reach the
	// internet through Cloud NAT. Default true.
	PrivateNodes *bool `json:"privateNodes,omitempty"`
	// PrivateEndpoint takes the control plane's public endpoint away. Pulumi must
	// then run inside the network. Default false.
	PrivateEndpoint bool `json:"privateEndpoint,omitempty"`
	// AuthorizedNetworks may reach the control plane. None by default: then only
	// the cluster's own network reaches it.
	AuthorizedNetworks []AuthorizedNetwork `json:"authorizedNetworks,omitempty"`
	Network            Network             `json:"network,omitempty"`
	// DataplaneV2 is GKE's datapath on eBPF, which enforces network policies.
	// Default true. It cannot be changed later.
	DataplaneV2 *bool `json:"dataplaneV2,omitempty"`
	// DNS is CLOUD_DNS, served by every node, or KUBE_DNS, served by pods.
	// Default CLOUD_DNS.
	DNS string `json:"dns,omitempty"`

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
	SecurityPosture string     `json:"securityPosture,omitempty"`
	Encryption      Encryption `json:"encryption,omitempty"`

	SystemPool SystemPool `json:"systemPool,omitempty"`
	// AutoscalingProfile is OPTIMIZE_UTILIZATION, which removes idle nodes soon,
	// or BALANCED. Default OPTIMIZE_UTILIZATION.
	AutoscalingProfile string `json:"autoscalingProfile,omitempty"`
	// ImageStreaming starts containers before their image is whole, on nodes with
	// Container-Optimized OS. Default true.
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

// Maintenance says when GKE may work on the cluster.
type Maintenance struct {
	// StartTime is when the daily window of four hours begins, like 03:00, in
	// UTC. Default 03:00.
	StartTime  string      `json:"startTime,omitempty"`
	Exclusions []Exclusion `json:"exclusions,omitempty"`
}

// Exclusion is a time in which neither the minor version of the control plane nor
// any node is upgraded: that of a long training.
type Exclusion struct {
	Name string `json:"name"`
	// Start and End are times like 2026-12-01T00:00:00Z, at most 180 days apart.
	Start string `json:"start"`
	End   string `json:"end"`
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
	// 10.0.0.0/20, for 4092 nodes, or larger where the pools have more.
	Nodes string `json:"nodes,omitempty"`
	// Pods is the secondary range for pods, of which GKE gives each node a block
	// of twice its maxPodsPerNode: a /24 for 110. Default 10.64.0.0/14, for 1024
	// such nodes, or larger where the pools need more.
	Pods string `json:"pods,omitempty"`
	// Services is the secondary range for services. Default 10.1.0.0/20.
	Services string `json:"services,omitempty"`
	// ControlPlane is the control plane's own /28. Default 172.16.0.0/28.
	ControlPlane string `json:"controlPlane,omitempty"`
}

// Encryption names keys of Cloud KMS, as
// projects/P/locations/L/keyRings/R/cryptoKeys/K. GKE is granted their use.
// Without one, Google's own keys encrypt.
type Encryption struct {
	// Secrets encrypts the Secrets of the cluster, beside the encryption of all
	// its state. The key is in the cluster's region.
	Secrets string `json:"secrets,omitempty"`
	// BootDisks encrypts the boot disks of all nodes.
	BootDisks string `json:"bootDisks,omitempty"`
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

// CSIDrivers are GKE's storage drivers. Each is there by default.
type CSIDrivers struct {
	PersistentDisk *bool `json:"persistentDisk,omitempty"`
	Filestore      *bool `json:"filestore,omitempty"`
	GCSFuse        *bool `json:"gcsFuse,omitempty"`
}

// Monitoring is what GKE writes to Cloud Monitoring.
type Monitoring struct {
	// Components are those of GKE whose metrics are kept. Default: all of
	// SYSTEM_COMPONENTS, POD, DAEMONSET, DEPLOYMENT, STATEFULSET, STORAGE, HPA,
	// CADVISOR, KUBELET and DCGM, the last for GPUs.
	Components []string `json:"components,omitempty"`
	// ManagedPrometheus collects what pods export. Default true.
	ManagedPrometheus *bool `json:"managedPrometheus,omitempty"`
}

// Backup is Backup for GKE.
type Backup struct {
	// Agent runs what backups need inside the cluster. Default true.
	Agent *bool `json:"agent,omitempty"`
	// Plan makes backups. Default none: everything in the cluster is in the stack
	// file, and checkpoints are outside. Backups outlive the stack.
	Plan *BackupPlan `json:"plan,omitempty"`
}

// BackupPlan backs up all namespaces, with their volumes and Secrets.
type BackupPlan struct {
	// Schedule is when, in cron's notation and UTC, like 0 4 * * *.
	Schedule string `json:"schedule"`
	// RetainDays is how long a backup is kept. Default 7.
	RetainDays int `json:"retainDays,omitempty"`
}

// MachineType says of a machine type what the program cannot know. The shape is
// given for types that are not in its catalogue, and for those only.
type MachineType struct {
	// CPUs is the number of vCPUs.
	CPUs int `json:"cpus,omitempty"`
	// Memory is a quantity like 240Gi.
	Memory string `json:"memory,omitempty"`
	// GPU is what the machine comes with.
	GPU *MachineGPU `json:"gpu,omitempty"`
	// HourlyPrice and SpotHourlyPrice are what a machine costs an hour, with its
	// GPUs, in a currency of yours. The stack's cost an hour is shown once all of
	// its machines have a price.
	HourlyPrice     float64 `json:"hourlyPrice,omitempty"`
	SpotHourlyPrice float64 `json:"spotHourlyPrice,omitempty"`
}

// MachineGPU is what a machine comes with.
type MachineGPU struct {
	Type  string `json:"type"`
	Count int    `json:"count"`
}

// NodePool is a group of like nodes. On an existing cluster it describes a pool
// that is there, by Name, MachineType, Nodes or Autoscaling, Spot, GPU,
// MaxPodsPerNode and Taints.
//
// The tag change of a field says what Google Cloud does when the field is
// changed: update keeps the pool, though its nodes may be upgraded one after the
// other, and replace deletes it with all of its nodes and makes another.
type NodePool struct {
	Name        string `json:"name" change:"replace"`
	MachineType string `json:"machineType" change:"update"`
	// Zones default to the cluster's. Nodes are spread over them evenly.
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
	// GPU makes the pool a GPU pool.
	GPU *GPU `json:"gpu,omitempty" change:"replace"`
	// ImageType is COS_CONTAINERD or UBUNTU_CONTAINERD. Default COS_CONTAINERD,
	// or for a GPU pool what the stack's NVIDIA driver needs.
	ImageType string `json:"imageType,omitempty" change:"update"`
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
	// Taints keep pods away that do not tolerate them. Roles and NATS servers
	// tolerate the taints of the pool that they are assigned to.
	Taints []Taint `json:"taints,omitempty" change:"update"`
}

// Autoscaling bounds the number of nodes of a pool, over all of its zones.
type Autoscaling struct {
	MinNodes int `json:"minNodes"`
	MaxNodes int `json:"maxNodes"`
	// LocationPolicy is ANY, which takes nodes in whichever zone has them, or
	// BALANCED, which keeps the zones level. Default ANY for GPU pools and spot,
	// BALANCED for others.
	LocationPolicy string `json:"locationPolicy,omitempty"`
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
	Strategy string `json:"strategy"`
	// MaxClients is how many containers share a GPU, from 2 to 48.
	MaxClients int `json:"maxClients"`
}

// Disk is the boot disk of a node.
type Disk struct {
	// Type is pd-standard, pd-balanced, pd-ssd or hyperdisk-balanced. Default
	// pd-balanced, or hyperdisk-balanced for machines that take nothing else.
	Type string `json:"type,omitempty"`
	// SizeGB is the size in GB. Default 100.
	SizeGB int `json:"sizeGb,omitempty"`
}

// Upgrade is how nodes are upgraded.
type Upgrade struct {
	// Strategy is SURGE, node by node, or BLUE_GREEN, which needs every node
	// twice. Default SURGE.
	Strategy string `json:"strategy,omitempty"`
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
	// AntiAffinity puts each server on a node of its own. Default false.
	AntiAffinity bool `json:"antiAffinity,omitempty"`
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

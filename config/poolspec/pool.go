package poolspec

import corev1 "k8s.io/api/core/v1"

// Pool is a group of identical nodes. On an existing cluster, it describes an existing
// pool by Name, MachineType, Nodes or Autoscaling, SpareNodes, Spot, GPU, MaxPodsPerNode and
// Taints.
//
// The tag change of a field says what Google Cloud does when the field changes: update keeps
// the pool, although GKE may recreate its nodes one by one, and replace deletes the pool with
// all of its nodes and creates another.
type Pool struct {
	// Name is the name of the pool, by which you assign roles and NATS servers to it. The
	// name system is reserved.
	Name string `json:"name" change:"replace"`
	// MachineType is a predefined machine type of Compute Engine, like
	// n2-highmem-32, that is not shared-core, or one that machineTypes describes.
	MachineType string `json:"machineType" change:"update"`
	// Zones are the zones over which the nodes are spread evenly. Default: the cluster's zones.
	// If the cluster sets none either, GKE chooses three.
	Zones []string `json:"zones,omitempty" change:"update"`
	// Nodes is a fixed number of nodes across all zones. Set either Nodes or
	// Autoscaling.
	Nodes *int `json:"nodes,omitempty" change:"update"`
	// Autoscaling lets GKE choose the number of nodes.
	Autoscaling *Autoscaling `json:"autoscaling,omitempty" change:"update"`
	// SpareNodes is how many of the nodes the capacity plan leaves to the pods of lost nodes.
	SpareNodes int `json:"spareNodes,omitempty" change:"none"`
	// Spot creates spot nodes, which Google Cloud may reclaim at any time. They get the label and
	// the taint cloud.google.com/gke-spot=true.
	Spot bool `json:"spot,omitempty" change:"replace"`
	// QueuedProvisioning creates nodes for the nn-workers of a queued job, all of them at
	// once. pulumi-gcp 7.38 has no field for flex-start.
	QueuedProvisioning bool `json:"queuedProvisioning,omitempty" change:"replace"`
	// Reservation is the Compute Engine reservation that the nodes use: its name, or
	// projects/P/reservations/R in another project, with /reservationBlocks/B for one block.
	Reservation string `json:"reservation,omitempty" change:"replace"`
	// CompactPlacement places the nodes close to each other, in one zone.
	CompactPlacement bool `json:"compactPlacement,omitempty" change:"replace"`
	// GPU attaches GPUs to nodes whose machine type accepts them, or partitions its own. Default:
	// the GPUs of the machine type.
	GPU *GPU `json:"gpu,omitempty" change:"replace"`
	// ImageType is COS_CONTAINERD or UBUNTU_CONTAINERD. Default COS_CONTAINERD, or, for a GPU
	// pool, the image that the stack's NVIDIA driver needs.
	ImageType string `json:"imageType,omitempty" change:"replace" enum:"COS_CONTAINERD,UBUNTU_CONTAINERD"`
	Disk      Disk   `json:"disk,omitempty" change:"update"`
	// LocalSSDs is the number of 375 GB local SSDs that hold ephemeral storage instead of
	// the boot disk. Default: the SSDs that come with the machine, as with A2 Ultra, A3
	// and A4, or 0.
	LocalSSDs int `json:"localSsdCount,omitempty" change:"replace"`
	// GVNIC enables Google's faster virtual network interface. Default true, but false with
	// UBUNTU_CONTAINERD and for M1 and M2.
	GVNIC *bool `json:"gvnic,omitempty" change:"replace"`
	// FastSocket speeds up NCCL between GPU nodes with Container-Optimized OS.
	FastSocket bool `json:"fastSocket,omitempty" change:"update"`
	// SecureBoot rejects kernel modules that are not signed. Default true, but false for GPU
	// pools whose driver a DaemonSet installs.
	SecureBoot *bool `json:"secureBoot,omitempty" change:"replace"`
	// MaxPodsPerNode is from 8 to 256. It determines how many addresses GKE reserves
	// for a node.
	MaxPodsPerNode int     `json:"maxPodsPerNode,omitempty" default:"110" change:"replace"`
	Upgrade        Upgrade `json:"upgrade,omitempty" change:"update"`
	// Labels are Kubernetes labels of the nodes.
	Labels map[string]string `json:"labels,omitempty" change:"update"`
	// Taints are Kubernetes taints, which repel pods that do not tolerate them. Roles and NATS
	// servers tolerate the taints of their pool.
	Taints []Taint `json:"taints,omitempty" change:"update"`
}

// Autoscaling limits the number of nodes of a pool, across all of its zones.
type Autoscaling struct {
	// MinNodes is the minimum number of nodes. It may be 0.
	MinNodes int `json:"minNodes"`
	// MaxNodes is the maximum number of nodes.
	MaxNodes int `json:"maxNodes"`
	// LocationPolicy is ANY, which adds nodes in any zone that has capacity, or BALANCED, which
	// keeps the zones even. Default ANY for GPU pools and spot nodes, else BALANCED.
	LocationPolicy string `json:"locationPolicy,omitempty" enum:"ANY,BALANCED"`
}

// GPU describes the GPUs of a node.
type GPU struct {
	// Type is Compute Engine's name for the accelerator, like nvidia-tesla-a100.
	// Default: the type of the GPUs that the machine type comes with.
	Type string `json:"type,omitempty"`
	// Count is the number of GPUs per node. Default: the number that the machine type
	// comes with.
	Count int `json:"count,omitempty"`
	// Partition divides each GPU into instances of this size (MIG), like 1g.5gb. Each
	// instance counts as one nvidia.com/gpu.
	Partition string `json:"partition,omitempty"`
	// Sharing lets several containers use one GPU, or one partition.
	Sharing *Sharing `json:"sharing,omitempty"`
}

// Sharing lets containers share a GPU. Each share counts as one nvidia.com/gpu, and a
// container requests one.
type Sharing struct {
	// Strategy is TIME_SHARING, or MPS for a pool of an existing cluster. Pods need hostIPC
	// for GKE's MPS, which the policies of the stack refuse.
	Strategy string `json:"strategy" enum:"TIME_SHARING,MPS"`
	// MaxClients is how many containers share a GPU, from 2 to 48.
	MaxClients int `json:"maxClients"`
}

// Disk is the boot disk of a node.
type Disk struct {
	// Type is one of pd-standard, pd-balanced, pd-ssd and hyperdisk-balanced. Default pd-balanced,
	// or hyperdisk-balanced where machines require it. Required for a machine series that the
	// program does not know.
	Type string `json:"type,omitempty" enum:"pd-standard,pd-balanced,pd-ssd,hyperdisk-balanced"`
	// SizeGB is the size in GB.
	SizeGB int `json:"sizeGb,omitempty" default:"100"`
}

// Upgrade says how GKE upgrades nodes.
type Upgrade struct {
	// Strategy is SURGE, which upgrades node by node, or BLUE_GREEN, which needs every
	// node twice.
	Strategy string `json:"strategy,omitempty" default:"SURGE" enum:"SURGE,BLUE_GREEN"`
	// MaxSurge is the number of additional nodes during a SURGE upgrade. Default 1 for every 20
	// nodes, but 0 for GPU pools, reservations, M1 to M4, and pools for roles only.
	MaxSurge *int `json:"maxSurge,omitempty"`
	// MaxUnavailable is the number of nodes that may be unavailable during a SURGE upgrade. Default
	// 0, or 1 for every 20 nodes if MaxSurge is 0.
	MaxUnavailable *int `json:"maxUnavailable,omitempty"`
	// BatchNodes is the number of nodes that a BLUE_GREEN upgrade drains at once.
	// Default 1 for every 20 nodes of the pool.
	BatchNodes int `json:"batchNodes,omitempty"`
	// SoakSeconds is how long a BLUE_GREEN upgrade keeps the old nodes. Default 3600.
	SoakSeconds int `json:"soakSeconds,omitempty"`
}

// Taint is a Kubernetes taint, written as in Kubernetes.
type Taint struct {
	// Key is the key of the taint, like example.com/dedicated.
	Key string `json:"key"`
	// Value is the value of the taint, which may be empty.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect corev1.TaintEffect `json:"effect" enum:"NoSchedule,PreferNoSchedule,NoExecute"`
}

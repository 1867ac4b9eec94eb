package nodepool

import corev1 "k8s.io/api/core/v1"

// Pool is a group of like nodes. On an existing cluster it describes a pool
// that is there, by Name, MachineType, Nodes or Autoscaling, Spot, GPU,
// MaxPodsPerNode and Taints.
//
// The tag change of a field says what Google Cloud does when the field is
// changed: update keeps the pool, though its nodes may be upgraded one after the
// other, and replace deletes it with all of its nodes and makes another.
type Pool struct {
	// Name is the pool's name, which roles and NATS servers are assigned by. The
	// name system is taken.
	Name string `json:"name" change:"replace"`
	// MachineType is a predefined machine type of Compute Engine, like
	// n2-highmem-32, that is not shared-core, or one that machineTypes describes.
	MachineType string `json:"machineType" change:"update"`
	// Zones are those of the nodes, which are spread over them evenly. Default: the
	// cluster's. If the cluster has none either, GKE spreads the nodes over three
	// zones of the region, which is refused for machine types that are not in every
	// zone.
	Zones []string `json:"zones,omitempty" change:"update"`
	// Nodes is a fixed number of nodes over all zones. Either it or Autoscaling
	// is given.
	Nodes *int `json:"nodes,omitempty" change:"update"`
	// Autoscaling lets GKE choose the number of nodes.
	Autoscaling *Autoscaling `json:"autoscaling,omitempty" change:"update"`
	// Spot takes nodes that cost less and may be taken back at any time. The nodes
	// get the label and the taint cloud.google.com/gke-spot=true.
	Spot bool `json:"spot,omitempty" change:"replace"`
	// QueuedProvisioning gives nodes only to pods that come with a
	// ProvisioningRequest, all of them at once. Roles come without.
	QueuedProvisioning bool `json:"queuedProvisioning,omitempty" change:"replace"`
	// Reservation is a reservation of Compute Engine that the nodes are taken
	// from: its name, or projects/P/reservations/R of another project, followed by
	// /reservationBlocks/B for one of its blocks.
	Reservation string `json:"reservation,omitempty" change:"replace"`
	// CompactPlacement puts the nodes close to each other, in one zone.
	CompactPlacement bool `json:"compactPlacement,omitempty" change:"replace"`
	// GPU attaches GPUs to the nodes of a machine type that takes them, or divides
	// those that the machine type comes with. Default: the GPUs of the machine type.
	GPU *GPU `json:"gpu,omitempty" change:"replace"`
	// ImageType is COS_CONTAINERD or UBUNTU_CONTAINERD. Default COS_CONTAINERD,
	// or for a GPU pool what the stack's NVIDIA driver needs. Image streaming comes
	// and goes with it, for which Google Cloud makes another pool.
	ImageType string `json:"imageType,omitempty" change:"replace" enum:"COS_CONTAINERD,UBUNTU_CONTAINERD"`
	Disk      Disk   `json:"disk,omitempty" change:"update"`
	// LocalSSDs is a number of local SSDs of 375 GB that hold ephemeral storage
	// instead of the boot disk. Default: those that are part of the machine, as with
	// A2 Ultra, A3 and A4, or 0.
	LocalSSDs int `json:"localSsdCount,omitempty" change:"replace"`
	// GVNIC is Google's own network interface, which is faster. Default true, but
	// false with UBUNTU_CONTAINERD and for M1 and M2, on which GKE does not have it.
	GVNIC *bool `json:"gvnic,omitempty" change:"replace"`
	// FastSocket speeds NCCL up, between nodes with GPUs and Container-Optimized
	// OS.
	FastSocket bool `json:"fastSocket,omitempty" change:"update"`
	// SecureBoot refuses kernel modules that are not signed. Default true, but
	// false for GPU pools whose driver is installed by a DaemonSet, since that
	// driver is not signed.
	SecureBoot *bool `json:"secureBoot,omitempty" change:"replace"`
	// MaxPodsPerNode is from 8 to 256. It decides how many addresses a node
	// takes.
	MaxPodsPerNode int     `json:"maxPodsPerNode,omitempty" default:"110" change:"replace"`
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
	LocationPolicy string `json:"locationPolicy,omitempty" enum:"ANY,BALANCED"`
}

// GPU is what a node of a GPU pool carries.
type GPU struct {
	// Type is the accelerator's name at Compute Engine, like nvidia-tesla-a100.
	// Default: that of the GPUs that the machine type comes with.
	Type string `json:"type,omitempty"`
	// Count is the number of GPUs a node. Default: as many as the machine type comes
	// with.
	Count int `json:"count,omitempty"`
	// Partition divides each GPU into instances of this size (MIG), like 1g.5gb.
	// Each of them counts as one nvidia.com/gpu.
	Partition string `json:"partition,omitempty"`
	// Sharing lets several containers use one GPU, or one partition.
	Sharing *Sharing `json:"sharing,omitempty"`
}

// Sharing lets containers share a GPU. Each place counts as one
// nvidia.com/gpu, and a container asks for one.
type Sharing struct {
	// Strategy is TIME_SHARING or MPS.
	Strategy string `json:"strategy" enum:"TIME_SHARING,MPS"`
	// MaxClients is how many containers share a GPU, from 2 to 48.
	MaxClients int `json:"maxClients"`
}

// Disk is the boot disk of a node.
type Disk struct {
	// Type is one of pd-standard, pd-balanced, pd-ssd and hyperdisk-balanced.
	// Default pd-balanced, or hyperdisk-balanced for machines that take nothing
	// else. It is required for a machine series that is not known here.
	Type string `json:"type,omitempty" enum:"pd-standard,pd-balanced,pd-ssd,hyperdisk-balanced"`
	// SizeGB is the size in GB.
	SizeGB int `json:"sizeGb,omitempty" default:"100"`
}

// Upgrade is how nodes are upgraded.
type Upgrade struct {
	// Strategy is SURGE, node by node, or BLUE_GREEN, which needs every node
	// twice.
	Strategy string `json:"strategy,omitempty" default:"SURGE" enum:"SURGE,BLUE_GREEN"`
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
	Effect corev1.TaintEffect `json:"effect" enum:"NoSchedule,PreferNoSchedule,NoExecute"`
}

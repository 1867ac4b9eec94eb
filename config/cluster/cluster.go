package cluster

// Cluster is the GKE cluster and its network: one that is created, or with
// Existing one that is there and of which nothing else is said here.
type Cluster struct {
	// Name is the cluster's name, and the prefix of everything around it: the
	// network, the router, the node identity.
	Name string `json:"name"`
	// Existing describes an existing cluster to use. The stack then creates and
	// changes nothing in Google Cloud, and Name is the only other field to set here.
	Existing *Existing `json:"existing,omitempty"`
	// Region is a region of Google Cloud, like us-central1. The control plane's
	// replicas are spread over its zones.
	Region string `json:"region"`
	// Zones are zones of the region, like us-central1-a: those of the system pool, and
	// of the pools that name none. Default: three that GKE chooses.
	Zones []string `json:"zones,omitempty"`
	// ReleaseChannel is RAPID, REGULAR or STABLE.
	ReleaseChannel string `json:"releaseChannel,omitempty" default:"REGULAR" enum:"RAPID,REGULAR,STABLE"`
	// DeletionProtection makes Pulumi and GKE refuse to delete the cluster, and
	// Pulumi refuse to delete or replace its node pools. To lift it, set it to
	// false and run `pulumi up` first.
	DeletionProtection bool        `json:"deletionProtection,omitempty" default:"true"`
	Maintenance        Maintenance `json:"maintenance,omitempty"`

	// PrivateNodes keeps public addresses from the nodes, which reach the internet
	// through Cloud NAT. It cannot be changed later.
	PrivateNodes bool `json:"privateNodes,omitempty" default:"true"`
	// PrivateEndpoint takes the public endpoint away from the control plane of
	// private nodes. Pulumi must then run inside the network.
	PrivateEndpoint bool `json:"privateEndpoint,omitempty"`
	// AuthorizedNetworks are the networks that may reach the control plane. None
	// by default: then only the cluster's own network reaches it.
	AuthorizedNetworks []AuthorizedNetwork `json:"authorizedNetworks,omitempty"`
	Network            Network             `json:"network,omitempty"`
	// DataplaneV2 is GKE's datapath on eBPF, which enforces network policies. It
	// cannot be changed later.
	DataplaneV2 bool `json:"dataplaneV2,omitempty" default:"true"`
	// DNS is CLOUD_DNS, served by every node, or KUBE_DNS, served by pods.
	DNS string `json:"dns,omitempty" default:"CLOUD_DNS" enum:"CLOUD_DNS,KUBE_DNS"`

	// WorkloadIdentity gives pods identities of their own at Google Cloud. Without
	// it pods act as the node does.
	WorkloadIdentity bool `json:"workloadIdentity,omitempty" default:"true"`
	// NodeRoles are IAM roles of the project that nodes hold beside the two that
	// they need, to write logs and metrics and to pull images. Default none.
	NodeRoles []string `json:"nodeRoles,omitempty"`
	// ShieldedNodes proves that a node is a machine of the cluster.
	ShieldedNodes bool `json:"shieldedNodes,omitempty" default:"true"`
	// BinaryAuthorization admits only images that the project's policy allows.
	BinaryAuthorization bool `json:"binaryAuthorization,omitempty" default:"true"`
	// SecurityPosture is BASIC, which audits workloads, or DISABLED.
	SecurityPosture string     `json:"securityPosture,omitempty" default:"BASIC" enum:"BASIC,DISABLED"`
	Encryption      Encryption `json:"encryption,omitempty"`

	SystemPool SystemPool `json:"systemPool,omitempty"`
	// AutoscalingProfile is OPTIMIZE_UTILIZATION, which removes idle nodes soon,
	// or BALANCED.
	AutoscalingProfile string `json:"autoscalingProfile,omitempty" default:"OPTIMIZE_UTILIZATION" enum:"OPTIMIZE_UTILIZATION,BALANCED"`
	// ImageStreaming starts containers before their image is whole, on nodes with
	// Container-Optimized OS and for images in Artifact Registry, as those of
	// persia:images are. A change replaces their pools.
	ImageStreaming bool       `json:"imageStreaming,omitempty" default:"true"`
	CSIDrivers     CSIDrivers `json:"csiDrivers,omitempty"`
	Monitoring     Monitoring `json:"monitoring,omitempty"`
	// CostManagement breaks the bill down by namespace and label.
	CostManagement bool   `json:"costManagement,omitempty" default:"true"`
	Backup         Backup `json:"backup,omitempty"`
}

// Existing says how to reach an existing cluster. Set Kubeconfig, Context, or both.
type Existing struct {
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
	// StartTime is when the daily window of four hours begins, like 03:00, in UTC.
	StartTime  string      `json:"startTime,omitempty" default:"03:00"`
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
	// MachineType is a machine type without GPUs.
	MachineType string `json:"machineType,omitempty" default:"e2-standard-4"`
	// Nodes is the number of nodes over all of the cluster's zones: at least 2, or 1
	// in a cluster with deletionProtection: false. Default 2, or one a zone where the
	// cluster has more zones.
	Nodes int `json:"nodes,omitempty"`
}

// CSIDrivers are GKE's storage drivers. Each is there by default.
type CSIDrivers struct {
	// PersistentDisk is the driver of Compute Engine's disks.
	PersistentDisk bool `json:"persistentDisk,omitempty" default:"true"`
	// Filestore is the driver of managed NFS shares.
	Filestore bool `json:"filestore,omitempty" default:"true"`
	// GCSFuse is the driver of Cloud Storage buckets, which volumes over a bucket
	// need.
	GCSFuse bool `json:"gcsFuse,omitempty" default:"true"`
}

// Monitoring is what GKE writes to Cloud Monitoring.
type Monitoring struct {
	// Components are the parts of GKE whose metrics are kept. Default: all of
	// SYSTEM_COMPONENTS, STORAGE, HPA, POD, DAEMONSET, DEPLOYMENT, STATEFULSET,
	// CADVISOR, KUBELET and DCGM, the last for GPUs. The first is needed with any
	// other; [] is none.
	Components []string `json:"components,omitempty" default:"SYSTEM_COMPONENTS,STORAGE,HPA,POD,DAEMONSET,DEPLOYMENT,STATEFULSET,CADVISOR,KUBELET,DCGM" enum:"SYSTEM_COMPONENTS,STORAGE,HPA,POD,DAEMONSET,DEPLOYMENT,STATEFULSET,CADVISOR,KUBELET,DCGM"`
	// ManagedPrometheus collects what pods export.
	ManagedPrometheus bool `json:"managedPrometheus,omitempty" default:"true"`
}

// Backup is Backup for GKE.
type Backup struct {
	// Agent runs what backups need inside the cluster.
	Agent bool `json:"agent,omitempty" default:"true"`
	// Plan makes backups. Default none: everything in the cluster is in the stack
	// file, and checkpoints are outside. Backups outlive the stack, and so does
	// the plan, called NAME as the cluster is: the next stack of the same name takes it
	// over, and one that is removed here is left to be deleted by hand.
	Plan *BackupPlan `json:"plan,omitempty"`
}

// BackupPlan backs up all namespaces, with their volumes and Secrets.
type BackupPlan struct {
	// Schedule is when, in cron's notation and UTC, like `0 4 * * *`.
	Schedule string `json:"schedule"`
	// RetainDays is how long a backup is kept.
	RetainDays int `json:"retainDays,omitempty" default:"7"`
}

// LeastSystemNodes is how many nodes the system pool has at least: 1 in a cluster that
// nobody would miss.
func (c *Cluster) LeastSystemNodes() int {
	if !c.DeletionProtection {
		return 1
	}
	return 2
}

package clusterspec

import (
	"reflect"

	"persia/config/check"
)

// Cluster is the GKE cluster and its network. The stack creates them, or, with Existing,
// uses an existing cluster.
type Cluster struct {
	// Name is the name of the cluster, and the prefix of the names of its network, router,
	// and node service account.
	Name string `json:"name"`
	// Existing describes an existing cluster to use. The stack then changes nothing in Google Cloud,
	// and of the other fields only Name and Replace apply.
	Existing *Existing `json:"existing,omitempty"`
	// Region is a Google Cloud region, like us-central1. GKE spreads the replicas of
	// the control plane over its zones.
	Region string `json:"region"`
	// Zones are zones of the region, like us-central1-a, for the system pool and for
	// pools that do not set their own. Default: three that GKE chooses.
	Zones []string `json:"zones,omitempty"`
	// ReleaseChannel is RAPID, REGULAR or STABLE.
	ReleaseChannel string `json:"releaseChannel,omitempty" default:"REGULAR" enum:"RAPID,REGULAR,STABLE"`
	// DeletionProtection prevents Pulumi and GKE from deleting the cluster, and Pulumi from
	// deleting or replacing its node pools.
	DeletionProtection bool `json:"deletionProtection,omitempty" default:"true"`
	// Replace is the name of a cluster that an update may replace although jobs run in it.
	// Default: none.
	Replace     string      `json:"replace,omitempty"`
	Maintenance Maintenance `json:"maintenance,omitempty"`

	// PrivateNodes creates nodes without public addresses, which reach the internet
	// through Cloud NAT. It cannot be changed later.
	PrivateNodes bool `json:"privateNodes,omitempty" default:"true"`
	// PrivateEndpoint removes the public endpoint of the control plane. It requires
	// private nodes, and Pulumi must run inside the network.
	PrivateEndpoint bool `json:"privateEndpoint,omitempty"`
	// AuthorizedNetworks are the networks that may reach the control plane. Default:
	// only the cluster's own network.
	AuthorizedNetworks []AuthorizedNetwork `json:"authorizedNetworks,omitempty"`
	Network            Network             `json:"network,omitempty"`
	// DataplaneV2 selects GKE's datapath based on eBPF, which enforces network
	// policies. It cannot be changed later.
	DataplaneV2 bool `json:"dataplaneV2,omitempty" default:"true"`
	// DNS is CLOUD_DNS, served by every node, or KUBE_DNS, served by pods.
	DNS string `json:"dns,omitempty" default:"CLOUD_DNS" enum:"CLOUD_DNS,KUBE_DNS"`

	// WorkloadIdentity gives each pod its own identity in Google Cloud. Without it,
	// pods act as their node.
	WorkloadIdentity bool `json:"workloadIdentity,omitempty" default:"true"`
	// NodeRoles are additional IAM roles that nodes get in the project. They always get two, to
	// write logs and metrics and to pull images. Default none.
	NodeRoles []string `json:"nodeRoles,omitempty"`
	// ShieldedNodes lets the control plane verify that a node is a machine of the
	// cluster.
	ShieldedNodes bool `json:"shieldedNodes,omitempty" default:"true"`
	// BinaryAuthorization admits only images that the policy of the project allows.
	BinaryAuthorization bool `json:"binaryAuthorization,omitempty" default:"true"`
	// SecurityPosture is BASIC, which audits workloads, or DISABLED.
	SecurityPosture string     `json:"securityPosture,omitempty" default:"BASIC" enum:"BASIC,DISABLED"`
	Encryption      Encryption `json:"encryption,omitempty"`

	SystemPool SystemPool `json:"systemPool,omitempty"`
	// AutoscalingProfile is OPTIMIZE_UTILIZATION, which removes idle nodes quickly,
	// or BALANCED.
	AutoscalingProfile string `json:"autoscalingProfile,omitempty" default:"OPTIMIZE_UTILIZATION" enum:"OPTIMIZE_UTILIZATION,BALANCED"`
	// ImageStreaming starts containers before their image is fully pulled. It works for Artifact
	// Registry, also through persia:images, on Container-Optimized OS. A change replaces the node
	// pools.
	ImageStreaming bool       `json:"imageStreaming,omitempty" default:"true"`
	CSIDrivers     CSIDrivers `json:"csiDrivers,omitempty"`
	Logging        Logging    `json:"logging,omitempty"`
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
	// SystemPool is the node pool, one of those in the stack file, for everything
	// except training.
	SystemPool string `json:"systemPool"`
}

// Maintenance is when GKE may work on the cluster.
type Maintenance struct {
	// StartTime is when the daily window of four hours begins, like 03:00, in UTC.
	StartTime  string      `json:"startTime,omitempty" default:"03:00"`
	Exclusions []Exclusion `json:"exclusions,omitempty"`
}

// Exclusion is a period, for example of a long training job, in which GKE upgrades neither
// the minor version of the control plane nor any node.
type Exclusion struct {
	// Name identifies the exclusion.
	Name string `json:"name"`
	// Start is when it begins, in UTC, like 2026-12-01T00:00:00Z.
	Start string `json:"start"`
	// End is when it ends, at most 180 days after Start.
	End string `json:"end"`
}

// Encryption names keys of Cloud KMS, as
// projects/P/locations/L/keyRings/R/cryptoKeys/K. The stack grants GKE the use of these
// keys. Without a key, Google's own keys encrypt.
type Encryption struct {
	// Secrets encrypts the Secrets of the cluster, in addition to the encryption of its
	// entire state. The key must be in the cluster's region.
	Secrets string `json:"secrets,omitempty"`
	// BootDisks encrypts the boot disks of all nodes. The key must be in the cluster's
	// region or global. A change replaces all node pools.
	BootDisks string `json:"bootDisks,omitempty"`
}

// SystemPool is the node pool for everything except training: GKE's own pods, the NATS
// operator, and metrics gateways.
type SystemPool struct {
	// MachineType is a machine type without GPUs.
	MachineType string `json:"machineType,omitempty" default:"e2-standard-4"`
	// Nodes is the number of nodes across all zones: at least 2, or 1 with deletionProtection:
	// false. Default 2, or one per zone if the cluster has more than two.
	Nodes int `json:"nodes,omitempty"`
}

// CSIDrivers are GKE's storage drivers. All are enabled by default.
type CSIDrivers struct {
	// PersistentDisk is the driver for Compute Engine disks. GKE creates every cluster with it: to
	// turn it off, first bring the cluster up with it.
	PersistentDisk bool `json:"persistentDisk,omitempty" default:"true"`
	// Filestore is the driver for managed NFS shares.
	Filestore bool `json:"filestore,omitempty" default:"true"`
	// GCSFuse is the driver for Cloud Storage buckets. gcsFuse volumes require it.
	GCSFuse bool `json:"gcsFuse,omitempty" default:"true"`
}

// On reports whether the driver with a field of the stack file is enabled.
func (d CSIDrivers) On(driver string) bool {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(d)) {
		if check.JSONName(f) == driver {
			return reflect.ValueOf(d).FieldByIndex(f.Index).Bool()
		}
	}
	return false
}

// Logging selects the logs that GKE writes to Cloud Logging.
type Logging struct {
	// Components are the parts of GKE whose logs Cloud Logging keeps. Default: all of
	// SYSTEM_COMPONENTS, which the others require; WORKLOADS, the pods of the stack; APISERVER,
	// SCHEDULER and CONTROLLER_MANAGER; [] disables all.
	Components []string `json:"components,omitempty" default:"SYSTEM_COMPONENTS,WORKLOADS,APISERVER,SCHEDULER,CONTROLLER_MANAGER" enum:"SYSTEM_COMPONENTS,WORKLOADS,APISERVER,SCHEDULER,CONTROLLER_MANAGER"`
}

// Monitoring selects the metrics that GKE writes to Cloud Monitoring.
type Monitoring struct {
	// Components are the parts of GKE whose metrics Cloud Monitoring keeps. Default: all of
	// SYSTEM_COMPONENTS, which the others require, STORAGE, HPA, POD, DAEMONSET, DEPLOYMENT,
	// STATEFULSET, CADVISOR, KUBELET and DCGM (GPUs); [] disables all.
	Components []string `json:"components,omitempty" default:"SYSTEM_COMPONENTS,STORAGE,HPA,POD,DAEMONSET,DEPLOYMENT,STATEFULSET,CADVISOR,KUBELET,DCGM" enum:"SYSTEM_COMPONENTS,STORAGE,HPA,POD,DAEMONSET,DEPLOYMENT,STATEFULSET,CADVISOR,KUBELET,DCGM"`
	// ManagedPrometheus collects the metrics that pods export.
	ManagedPrometheus bool `json:"managedPrometheus,omitempty" default:"true"`
}

// Backup is Backup for GKE.
type Backup struct {
	// Agent runs what backups need inside the cluster.
	Agent bool `json:"agent,omitempty" default:"true"`
	// Plan makes backups. Default none. The plan and its backups outlive the stack. If you remove
	// the plan here, delete it by hand.
	Plan *BackupPlan `json:"plan,omitempty"`
}

// BackupPlan backs up all namespaces, with their volumes and Secrets.
type BackupPlan struct {
	// Schedule says when to make backups, in cron notation and UTC, like `0 4 * * *`.
	Schedule string `json:"schedule"`
	// RetainDays is how long a backup is kept.
	RetainDays int `json:"retainDays,omitempty" default:"7"`
}

// LeastSystemNodes returns the minimum number of nodes of the system pool: 1 in a cluster
// that may be deleted, and 2 in others.
func (c *Cluster) LeastSystemNodes() int {
	if !c.DeletionProtection {
		return 1
	}
	return 2
}

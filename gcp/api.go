package gcp

import (
	"slices"
	"strings"
)

// The node images of GKE.
const (
	ImageCOS    = "COS_CONTAINERD"
	ImageUbuntu = "UBUNTU_CONTAINERD"
)

// The types of disk.
const (
	pdStandard        = "pd-standard"
	PDBalanced        = "pd-balanced"
	pdSSD             = "pd-ssd"
	hyperdiskBalanced = "hyperdisk-balanced"
)

// DiskTypes are the types of boot disk that GKE's nodes can have.
var DiskTypes = []string{pdStandard, PDBalanced, pdSSD, hyperdiskBalanced}

// DiskGB returns the smallest and the largest size of a disk in GB, or zeros if there is none of the type.
func DiskGB(diskType string, regional bool) (least, most int) {
	if regional {
		diskType = "regional " + diskType
	}
	sizes := tables().Disks[diskType]
	return sizes[0], sizes[1]
}

// DriverDisabled is the driver version that leaves the driver of GPUs to the user.
const DriverDisabled = "INSTALLATION_DISABLED"

// The roles that a node needs to write logs and metrics, and to pull images.
const (
	RoleDefaultNode = "roles/container.defaultNodeServiceAccount"
	RoleImageReader = "roles/artifactregistry.reader"
)

// The roles that the program grants on storage and keys.
const (
	RoleObjectUser = "roles/storage.objectUser"
	RoleKeyUser    = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
)

// Components are the parts of GKE whose logs or metrics can be kept and that every version takes, in the order of the
// enumerations (GKE API, LoggingComponentConfig, MonitoringComponentConfig), in which GKE answers.
var Components = map[string][]string{
	"logging": {"SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER"},
	"monitoring": {"SYSTEM_COMPONENTS", "STORAGE", "HPA", "POD", "DAEMONSET", "DEPLOYMENT", "STATEFULSET", "CADVISOR",
		"KUBELET", "DCGM"},
}

// WorkloadPool returns the workload identity pool of a project's pods.
func WorkloadPool(project string) string { return project + ".svc.id.goog" }

// The labels that GKE gives to nodes.
const (
	// LabelComputeClass is the compute class of the node. Pods select it, and the taint with its name keeps others off.
	LabelComputeClass = "cloud.google.com/compute-class"
	// LabelNodePool is the name of the node's pool.
	LabelNodePool = "cloud.google.com/gke-nodepool"
	// LabelAccelerator is the type of the node's GPUs.
	LabelAccelerator = "cloud.google.com/gke-accelerator"
	// LabelGPUDriver is the driver that GKE installs. Nodes whose driver it leaves
	// alone have no such label, or disabled as its value.
	LabelGPUDriver = "cloud.google.com/gke-gpu-driver-version"
	// LabelSpot is true on spot nodes.
	LabelSpot = "cloud.google.com/gke-spot"
	// LabelZone is the zone of the node, as the driver of Persistent Disks names it in the affinity of volumes.
	LabelZone = "topology.gke.io/zone"
	// LabelQueued is true on nodes of queued provisioning.
	LabelQueued = "cloud.google.com/gke-queued"
)

// The keys of taints that GKE adds. The first has the value present and the others true; all have
// the effect NoSchedule.
const (
	// TaintGPU is given to nodes with GPUs by GKE.
	TaintGPU = GPUResource
	// TaintSpot is given to spot nodes by the program.
	TaintSpot = LabelSpot
	// TaintQueued is given to nodes of queued provisioning by GKE.
	TaintQueued = LabelQueued
)

// ClassQueued is GKE's class of ProvisioningRequests for pools with queued provisioning.
const ClassQueued = "queued-provisioning.gke.io"

// The annotations of pods that use the nodes of a ProvisioningRequest: its name, and its class.
const (
	AnnotationRequest      = "autoscaling.x-k8s.io/consume-provisioning-request"
	AnnotationRequestClass = "autoscaling.x-k8s.io/provisioning-class-name"
)

// TaintGPUValue is the value of TaintGPU.
const TaintGPUValue = "present"

// GKE's CSI drivers.
const (
	DriverFilestore      = "filestore.csi.storage.gke.io"
	DriverGCSFuse        = "gcsfuse.csi.storage.gke.io"
	DriverPersistentDisk = "pd.csi.storage.gke.io"
)

// AuthPlugin is the program that gets kubectl a credential for GKE.
const AuthPlugin = "gke-gcloud-auth-plugin"

// ContainerDriverPath is where containers find the NVIDIA driver.
const ContainerDriverPath = "/usr/local/nvidia"

// RegionOf returns the region of a zone.
func RegionOf(zone string) string { return zone[:max(0, strings.LastIndex(zone, "-"))] }

// LocationHolds reports whether a bucket in a location has its data in a region.
func LocationHolds(location, region string) bool {
	return strings.EqualFold(location, region) ||
		slices.ContainsFunc(tables().MultiRegions[location], func(prefix string) bool { return strings.HasPrefix(region, prefix) })
}

// filestoreBands are the capacities of Filestore instances in GiB, by tier (Filestore, "Service tiers"). No
// instance leaves its band.
var filestoreBands = map[string][]struct{ least, most, step int64 }{
	"BASIC_HDD":  {{1024, 65433, 1}},
	"BASIC_SSD":  {{2560, 65433, 1}},
	"ZONAL":      {{1024, 9984, 256}, {10240, 102400, 2560}},
	"REGIONAL":   {{100, 10239, 1}, {10240, 102400, 2560}},
	"ENTERPRISE": {{1024, 10240, 256}},
}

// FilestoreSizes returns the capacities of a tier next to a capacity, or that one if the tier has it, and the
// most to which an instance of that capacity can grow. All are in GiB. It returns none for an unknown tier.
func FilestoreSizes(tier string, capacity int64) (next []int64, most int64) {
	for _, band := range filestoreBands[tier] {
		if within := min(max(capacity, band.least), band.most); capacity >= band.least {
			most = band.most
			next = []int64{within - (within-band.least)%band.step}
		}
		if capacity <= band.most {
			up := max(0, capacity-band.least) + band.step - 1
			return slices.Compact(append(next, band.least+up-up%band.step)), most
		}
	}
	return next, most
}

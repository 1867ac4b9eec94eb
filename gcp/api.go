package gcp

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

// MonitoringComponents are all parts of GKE whose metrics can be kept and that every version takes, in the order of the
// enumeration (GKE API, MonitoringComponentConfig), in which GKE answers.
var MonitoringComponents = []string{
	"SYSTEM_COMPONENTS", "STORAGE", "HPA", "POD", "DAEMONSET", "DEPLOYMENT", "STATEFULSET", "CADVISOR", "KUBELET", "DCGM",
}

// LoggingComponents are the parts of GKE whose logs can be kept, in the order of the
// enumeration (GKE API, LoggingComponentConfig).
var LoggingComponents = []string{
	"SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER",
}

// WorkloadPool returns the workload identity pool of a project's pods.
func WorkloadPool(project string) string { return project + ".svc.id.goog" }

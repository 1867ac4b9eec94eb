package gcp

// The labels that GKE gives to nodes.
const (
	// LabelNodePool is the name of the node's pool.
	LabelNodePool = "cloud.google.com/gke-nodepool"
	// LabelAccelerator is the type of the node's GPUs.
	LabelAccelerator = "cloud.google.com/gke-accelerator"
	// LabelGPUDriver is the driver that GKE installs. Nodes whose driver it leaves
	// alone have no such label, or GPUDriverDisabled as its value.
	LabelGPUDriver = "cloud.google.com/gke-gpu-driver-version"
	// GPUDriverDisabled is the value of LabelGPUDriver on nodes whose driver GKE leaves alone.
	GPUDriverDisabled = "disabled"
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

// The addresses of the metadata server, and of the server on the node that replaces it with
// Workload Identity. With Dataplane V2, network policies see the first address, without it the
// second (GKE, "Workload Identity Federation", network policy).
const (
	MetadataServer     = "169.254.169.254"
	NodeMetadataServer = "169.254.169.252"
)

// AuthPlugin is the program that gets kubectl a credential for GKE.
const AuthPlugin = "gke-gcloud-auth-plugin"

// ContainerDriverPath is where containers find the NVIDIA driver.
const ContainerDriverPath = "/usr/local/nvidia"

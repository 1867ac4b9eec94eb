package nodepools

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	pulumiresource "github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/sandbox/gcp/property"
)

const (
	gpuResource = gcp.GPUResource
	// podsPerNode is GKE's default.
	podsPerNode = 110
	// bootDiskGB is GKE's default size of a boot disk.
	bootDiskGB = 100
)

// Machines are machine types that the catalogue of package gcp lacks, by their
// names.
type Machines map[string]gcp.Machine

func (m Machines) lookup(machineType string) (gcp.Machine, bool) {
	if machine, known := gcp.Lookup(machineType); known {
		return machine, true
	}
	machine, known := m[machineType]
	return machine, known
}

// nodeTemplate returns a node of a pool without its name and zone, as GKE's kubelet would report
// it.
func nodeTemplate(inputs pulumiresource.PropertyMap, machines Machines) (*corev1.Node, error) {
	node := property.Object(inputs, "nodeConfig")
	machine, known := machines.lookup(property.Text(node, "machineType"))
	if !known {
		return nil, fmt.Errorf("machine type %q is not in the catalogue of package gcp: describe it in persia:machineTypes", property.Text(node, "machineType"))
	}
	gpu := nodeGPU(node, machine)
	machine = machine.WithGPUs(gpu.Type, gpu.Count)
	total := capacity.Resources{MilliCPU: int64(machine.CPUs) * 1000, MemoryBytes: machine.MemoryBytes}
	allocatable := capacity.Allocatable(machine)
	total.EphemeralBytes, allocatable.EphemeralBytes = capacity.EphemeralStorage(property.NumberOr(node, "diskSizeGb", bootDiskGB), localSSDs(node))
	for _, amount := range []*capacity.Resources{&total, &allocatable} {
		amount.GPUs = gpu.AllocatableGPUs()
		amount.Pods = int64(property.NumberOr(inputs, "maxPodsPerNode", podsPerNode))
	}
	// GKE's own pods are not simulated, so their requests are missing here.
	allocatable = allocatable.Minus(capacity.NodeAgents)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Labels: nodeLabels(inputs, machine, gpu),
			// kwok keeps nodes with this annotation alive, and runs their pods.
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{Taints: nodeTaints(inputs)},
		Status: corev1.NodeStatus{
			Capacity:    resources(total),
			Allocatable: resources(allocatable),
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux",
				Architecture:    "amd64",
				OSImage:         property.Text(node, "imageType"),
				KubeletVersion:  "sandbox",
			},
		},
	}, nil
}

// nodeGPU returns the GPUs of a node: the pool's, or the machine's own.
func nodeGPU(node pulumiresource.PropertyMap, machine gcp.Machine) config.GPU {
	gpu := config.GPU{Type: machine.GPUType, Count: machine.GPUs}
	for _, accelerator := range property.Objects(node, "guestAccelerators") {
		gpu.Type = property.Text(accelerator, "type")
		gpu.Count = property.NumberOr(accelerator, "count", 0)
		gpu.Partition = property.Text(accelerator, "gpuPartitionSize")
		if sharing := property.Object(accelerator, "gpuSharingConfig"); sharing != nil {
			gpu.Sharing = &config.Sharing{
				Strategy:   property.Text(sharing, "gpuSharingStrategy"),
				MaxClients: property.NumberOr(sharing, "maxSharedClientsPerGpu", 0),
			}
		}
	}
	return gpu
}

// localSSDs returns the number of local SSDs that hold a node's ephemeral storage.
func localSSDs(node pulumiresource.PropertyMap) int {
	return property.NumberOr(property.Object(node, "ephemeralStorageLocalSsdConfig"), "localSsdCount", 0)
}

func resources(amount capacity.Resources) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(amount.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(amount.MemoryBytes, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(amount.Pods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(amount.EphemeralBytes, resource.BinarySI),
	}
	if amount.GPUs > 0 {
		list[gpuResource] = *resource.NewQuantity(amount.GPUs, resource.DecimalSI)
	}
	return list
}

// nodeLabels returns the labels of the pool and of GKE.
func nodeLabels(inputs pulumiresource.PropertyMap, machine gcp.Machine, gpu config.GPU) map[string]string {
	node := property.Object(inputs, "nodeConfig")
	labels := map[string]string{}
	own := property.Object(node, "labels")
	for key := range own {
		labels[string(key)] = property.Text(own, string(key))
	}
	labels[clusterLabel] = property.Text(inputs, "cluster")
	labels[gcp.LabelNodePool] = property.Text(inputs, "name")
	labels[corev1.LabelInstanceTypeStable] = machine.Type
	labels[corev1.LabelTopologyRegion] = property.Text(inputs, "location")
	labels[corev1.LabelOSStable] = "linux"
	labels[corev1.LabelArchStable] = "amd64"
	labels["cloud.google.com/machine-family"] = machine.Family()
	labels["cloud.google.com/gke-boot-disk"] = property.Text(node, "diskType")
	labels["cloud.google.com/gke-os-distribution"] = distribution(property.Text(node, "imageType"))
	labels["cloud.google.com/gke-container-runtime"] = "containerd"
	if property.Truth(node, "spot", false) {
		labels[gcp.LabelSpot] = "true"
	}
	if queued(inputs) {
		labels[queuedKey] = "true"
	}
	if localSSDs(node) > 0 {
		labels["cloud.google.com/gke-ephemeral-storage-local-ssd"] = "true"
	}
	maps.Copy(labels, gpuLabels(node, gpu))
	return labels
}

// gpuLabels returns the labels for the GPUs of a node, how they are divided, and who installs the
// driver.
func gpuLabels(node pulumiresource.PropertyMap, gpu config.GPU) map[string]string {
	if gpu.Count == 0 {
		return nil
	}
	labels := map[string]string{
		gcp.LabelAccelerator:                     gpu.Type,
		"cloud.google.com/gke-accelerator-count": strconv.Itoa(gpu.Count),
	}
	if version := managedDriver(node); version != "" {
		labels[gcp.LabelGPUDriver] = version
	}
	if gpu.Partition != "" {
		labels["cloud.google.com/gke-gpu-partition-size"] = gpu.Partition
	}
	if gpu.Sharing != nil {
		labels["cloud.google.com/gke-gpu-sharing-strategy"] = sharingLabels[gpu.Sharing.Strategy]
		labels["cloud.google.com/gke-max-shared-clients-per-gpu"] = strconv.Itoa(gpu.Sharing.MaxClients)
	}
	return labels
}

// sharingLabels are the strategies of sharing as labels say them.
var sharingLabels = map[string]string{"TIME_SHARING": "time-sharing", "MPS": "mps"}

// queuedKey is of the label and of the taint that GKE gives to nodes of queued
// provisioning.
const queuedKey = gcp.LabelQueued

func queued(inputs pulumiresource.PropertyMap) bool {
	return property.Truth(property.Object(inputs, "queuedProvisioning"), "enabled", false)
}

// managedDriver returns the driver that GKE installs, as its label says it, or "".
// GKE installs one unless it is told not to.
func managedDriver(node pulumiresource.PropertyMap) string {
	for _, accelerator := range property.Objects(node, "guestAccelerators") {
		switch version := property.Text(property.Object(accelerator, "gpuDriverInstallationConfig"), "gpuDriverVersion"); version {
		case "INSTALLATION_DISABLED":
			return ""
		case "LATEST":
			return "latest"
		}
	}
	return "default"
}

func distribution(imageType string) string {
	if strings.HasPrefix(imageType, "UBUNTU") {
		return "ubuntu"
	}
	return "cos"
}

// taintEffects are the effects of taints as the GKE API spells them, and as
// Kubernetes does.
var taintEffects = map[string]corev1.TaintEffect{
	"NO_SCHEDULE":        corev1.TaintEffectNoSchedule,
	"PREFER_NO_SCHEDULE": corev1.TaintEffectPreferNoSchedule,
	"NO_EXECUTE":         corev1.TaintEffectNoExecute,
}

// nodeTaints returns the taints of the pool and of GKE: for GPUs, as the API returns them, and for
// queued provisioning.
func nodeTaints(inputs pulumiresource.PropertyMap) []corev1.Taint {
	var taints []corev1.Taint
	for _, taint := range property.Objects(property.Object(inputs, "nodeConfig"), "effectiveTaints") {
		taints = append(taints, corev1.Taint{
			Key:    property.Text(taint, "key"),
			Value:  property.Text(taint, "value"),
			Effect: taintEffects[property.Text(taint, "effect")],
		})
	}
	if queued(inputs) {
		taints = append(taints, corev1.Taint{Key: queuedKey, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	return taints
}

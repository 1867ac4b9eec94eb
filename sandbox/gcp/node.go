package gcp

import (
	"fmt"
	"strconv"
	"strings"

	pulumiresource "github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
)

const (
	gpuResource = "nvidia.com/gpu"
	// podsPerNode is GKE's default.
	podsPerNode = 110
	// bootDiskGiB is GKE's default size of a boot disk.
	bootDiskGiB = 100
)

// nodeTemplate is a node of a pool without its name and zone: what a kubelet of
// GKE would report of itself.
func nodeTemplate(inputs pulumiresource.PropertyMap) (*corev1.Node, error) {
	config := object(inputs, "nodeConfig")
	machine, known := capacity.Lookup(text(config, "machineType"))
	if !known {
		return nil, fmt.Errorf("machine type %q is not in the catalogue of package capacity", text(config, "machineType"))
	}
	size, sized := number(config, "diskSizeGb")
	if !sized {
		size = bootDiskGiB
	}
	disk, allocatableDisk := bootDisk(size)
	accelerators := objects(config, "guestAccelerators")
	if len(accelerators) > 0 {
		count, _ := number(accelerators[0], "count")
		machine = machine.WithGPUs(text(accelerators[0], "type"), count)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Labels: nodeLabels(inputs, machine),
			// kwok keeps nodes with this annotation alive, and runs their pods.
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{Taints: nodeTaints(config, machine)},
		Status: corev1.NodeStatus{
			Capacity: resources(capacity.Resources{
				MilliCPU:    int64(machine.CPUs) * 1000,
				MemoryBytes: machine.MemoryBytes,
				GPUs:        int64(machine.GPUs),
			}, disk),
			Allocatable: resources(machine.Allocatable(), allocatableDisk),
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux",
				Architecture:    "amd64",
				OSImage:         text(config, "imageType"),
				KubeletVersion:  "sandbox",
			},
		},
	}, nil
}

// bootDisk is what a boot disk holds beside the node's image, and what GKE leaves
// of it to pods, in bytes: a tenth is the kubelet's eviction threshold, and the
// system takes half of the disk, or 6 GiB and 35%, or 100 GiB, whichever is least
// (GKE, "Plan GKE Standard node sizes").
func bootDisk(sizeGiB int) (total, allocatable int64) {
	size := int64(sizeGiB) * capacity.GiB
	total = size * 94 / 100 // the file system for pods on Container-Optimized OS
	system := min(size/2, 6*capacity.GiB+size*35/100, 100*capacity.GiB)
	return total, total - total/10 - system
}

func resources(amount capacity.Resources, disk int64) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(amount.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(amount.MemoryBytes, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(podsPerNode, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(disk, resource.BinarySI),
	}
	if amount.GPUs > 0 {
		list[gpuResource] = *resource.NewQuantity(amount.GPUs, resource.DecimalSI)
	}
	return list
}

// nodeLabels are the pool's own and those that GKE adds.
func nodeLabels(inputs pulumiresource.PropertyMap, machine capacity.Machine) map[string]string {
	config := object(inputs, "nodeConfig")
	labels := map[string]string{}
	own := object(config, "labels")
	for key := range own {
		labels[string(key)] = text(own, string(key))
	}
	labels[clusterLabel] = text(inputs, "cluster")
	labels[poolLabel] = text(inputs, "name")
	labels[corev1.LabelInstanceTypeStable] = machine.Type
	labels[corev1.LabelTopologyRegion] = text(inputs, "location")
	labels[corev1.LabelOSStable] = "linux"
	labels[corev1.LabelArchStable] = "amd64"
	labels["cloud.google.com/machine-family"] = machine.Family()
	labels["cloud.google.com/gke-boot-disk"] = text(config, "diskType")
	labels["cloud.google.com/gke-os-distribution"] = distribution(text(config, "imageType"))
	labels["cloud.google.com/gke-container-runtime"] = "containerd"
	if machine.GPUs > 0 {
		labels["cloud.google.com/gke-accelerator"] = machine.GPUType
		labels["cloud.google.com/gke-accelerator-count"] = strconv.Itoa(machine.GPUs)
		if version := managedDriver(config); version != "" {
			labels["cloud.google.com/gke-gpu-driver-version"] = version
		}
	}
	return labels
}

// managedDriver is the driver that GKE installs, as its label says it, or "".
// GKE installs one unless it is told not to.
func managedDriver(config pulumiresource.PropertyMap) string {
	for _, accelerator := range objects(config, "guestAccelerators") {
		switch version := text(object(accelerator, "gpuDriverInstallationConfig"), "gpuDriverVersion"); version {
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

// nodeTaints are the pool's own and the one that GKE gives to nodes with GPUs.
func nodeTaints(config pulumiresource.PropertyMap, machine capacity.Machine) []corev1.Taint {
	var taints []corev1.Taint
	for _, taint := range objects(config, "taints") {
		taints = append(taints, corev1.Taint{
			Key:    text(taint, "key"),
			Value:  text(taint, "value"),
			Effect: taintEffects[text(taint, "effect")],
		})
	}
	if machine.GPUs > 0 {
		taints = append(taints, corev1.Taint{Key: gpuResource, Value: "present", Effect: corev1.TaintEffectNoSchedule})
	}
	return taints
}

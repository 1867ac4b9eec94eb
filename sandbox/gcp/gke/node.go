package gke

import (
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/sandbox/gcp/google"
)

// Machines are machine types that the catalogue of package gcp lacks, by their names.
type Machines map[string]gcp.Machine

// nodeTemplate returns a node of a pool without its name and zone, as GKE's kubelet would report it.
func (p Pool) nodeTemplate(machines Machines) (*corev1.Node, error) {
	node := google.Object(p.body, "config")
	called := google.Text(node, "machineType")
	machine, known := gcp.Lookup(called)
	if !known {
		machine, known = machines[called]
	}
	if !known {
		return nil, fmt.Errorf("machine type %q is not in the catalogue of package gcp: describe it in persia:machineTypes", called)
	}
	gpu := nodeGPU(node, machine)
	machine = machine.WithGPUs(gpu.Type, gpu.Count)
	total := capacity.Resources{MilliCPU: int64(machine.CPUs) * 1000, MemoryBytes: machine.MemoryBytes}
	allocatable := capacity.Allocatable(machine)
	total.EphemeralBytes, allocatable.EphemeralBytes = capacity.EphemeralStorage(
		google.Number(node, "diskSizeGb"), google.Number(node, "ephemeralStorageLocalSsdConfig.localSsdCount"))
	pods, _ := strconv.ParseInt(google.Text(p.body, "maxPodsConstraint.maxPodsPerNode"), 10, 64)
	for _, amount := range []*capacity.Resources{&total, &allocatable} {
		amount.GPUs, amount.Pods = int64(gpu.Count), pods
	}
	// GKE's own pods are not simulated, so their requests are missing here.
	allocatable = allocatable.Minus(capacity.NodeAgents)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Labels: p.nodeLabels(machine, gpu),
			// kwok keeps nodes with this annotation alive, and runs their pods.
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{Taints: p.nodeTaints()},
		Status: corev1.NodeStatus{
			Capacity:    resources(total),
			Allocatable: resources(allocatable),
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux",
				Architecture:    "amd64",
				OSImage:         google.Text(node, "imageType"),
				KubeletVersion:  "sandbox",
			},
		},
	}, nil
}

// nodeGPU returns the GPUs of a node: the pool's, or the machine's own.
func nodeGPU(node google.Body, machine gcp.Machine) config.GPU {
	gpu := config.GPU{Type: machine.GPUType, Count: machine.GPUs}
	for _, accelerator := range google.Objects(node, "accelerators") {
		gpu = config.GPU{Type: google.Text(accelerator, "acceleratorType"), Count: google.Number(accelerator, "acceleratorCount")}
	}
	return gpu
}

func resources(amount capacity.Resources) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(amount.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(amount.MemoryBytes, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(amount.Pods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(amount.EphemeralBytes, resource.BinarySI),
	}
	if amount.GPUs > 0 {
		list[gcp.GPUResource] = *resource.NewQuantity(amount.GPUs, resource.DecimalSI)
	}
	return list
}

// nodeLabels returns the pool's own labels, and the labels from GKE that the program or its tests read.
func (p Pool) nodeLabels(machine gcp.Machine, gpu config.GPU) map[string]string {
	node := google.Object(p.body, "config")
	labels := map[string]string{}
	for key, value := range google.Object(node, "labels") {
		labels[key] = fmt.Sprint(value)
	}
	maps.Copy(labels, map[string]string{
		clusterLabel:                   google.Element(p.path, "clusters"),
		gcp.LabelNodePool:              p.Name(),
		corev1.LabelInstanceTypeStable: machine.Type,
		corev1.LabelTopologyRegion:     google.Element(p.path, "locations"),
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         "amd64",
	})
	if google.Truth(node, "spot") {
		labels[gcp.LabelSpot] = "true"
	}
	if p.Queued() {
		labels[gcp.LabelQueued] = "true"
	}
	if gpu.Count > 0 {
		labels[gcp.LabelAccelerator] = gpu.Type
		if version := managedDriver(node); version != "" {
			labels[gcp.LabelGPUDriver] = version
		}
	}
	return labels
}

// managedDriver returns the driver that GKE installs, as its label says it, or "".
// GKE installs one unless it is told not to.
func managedDriver(node google.Body) string {
	for _, accelerator := range google.Objects(node, "accelerators") {
		switch google.Text(accelerator, "gpuDriverInstallationConfig.gpuDriverVersion") {
		case "INSTALLATION_DISABLED":
			return ""
		case "LATEST":
			return "latest"
		}
	}
	return "default"
}

// taintEffects are the effects of taints as the GKE API spells them, and as Kubernetes does.
var taintEffects = map[string]corev1.TaintEffect{
	"NO_SCHEDULE":        corev1.TaintEffectNoSchedule,
	"PREFER_NO_SCHEDULE": corev1.TaintEffectPreferNoSchedule,
	"NO_EXECUTE":         corev1.TaintEffectNoExecute,
}

// nodeTaints returns the taints of the pool, and those that GKE adds for GPUs and for queued provisioning.
func (p Pool) nodeTaints() []corev1.Taint {
	var taints []corev1.Taint
	for _, taint := range append(google.Objects(p.body, "config.taints"), google.Objects(p.body, google.GPUTaints)...) {
		taints = append(taints, corev1.Taint{
			Key:    google.Text(taint, "key"),
			Value:  google.Text(taint, "value"),
			Effect: taintEffects[google.Text(taint, "effect")],
		})
	}
	if p.Queued() {
		taints = append(taints, corev1.Taint{Key: gcp.LabelQueued, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	return taints
}

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"persia/capacity"
)

// systemPoolName is the name of the system pool of a cluster that is created. No
// pool of the stack file may be called so.
const systemPoolName = "system"

// longestPoolName is GKE's limit (GKE API, NodePool).
const longestPoolName = 40

const (
	imageCOS    = "COS_CONTAINERD"
	imageUbuntu = "UBUNTU_CONTAINERD"
)

// gpuTaint is what GKE taints GPU nodes with by itself. It is the name of the
// resource too.
const gpuTaint = "nvidia.com/gpu"

func (v *validator) nodePools() {
	path := field.NewPath(nodePoolsKey)
	names := make([]string, len(v.stack.NodePools))
	for i, p := range v.stack.NodePools {
		names[i] = p.Name
		v.nodePool(path.Index(i), p)
	}
	unique(names, func(i, first int) {
		v.duplicate(path.Index(i).Child("name"), names[i], "is that of nodePools[%d]; each pool has a name of its own", first)
	})
}

func (v *validator) nodePool(path *field.Path, p NodePool) {
	v.name(path.Child("name"), p.Name, validation.IsDNS1035Label)
	v.atMost(longestPoolName, path.Child("name"), p.Name, "as GKE takes no longer one")
	if p.Name == systemPoolName {
		v.invalid(path.Child("name"), p.Name, "is the name of the cluster's system pool; choose another")
	}
	if !slices.Equal(p.Zones, v.stack.Cluster.Zones) {
		v.zones(path.Child("zones"), p.Zones)
	}
	v.poolSize(path, p)
	if m, ok := v.machine(path.Child("machineType"), p.MachineType); ok {
		v.gpu(path.Child("gpu"), p, m)
		v.disk(path.Child("disk"), p, m)
	}
	oneOf(v, path.Child("imageType"), p.ImageType, imageCOS, imageUbuntu)
	v.labels(path.Child("labels"), p.Labels)
	v.taints(path.Child("taints"), p.Taints)
}

func (v *validator) poolSize(path *field.Path, p NodePool) {
	switch {
	case p.Nodes != nil && p.Autoscaling != nil:
		v.forbidden(path.Child("autoscaling"), "nodes is %d already; write either nodes or autoscaling", *p.Nodes)
	case p.Nodes == nil && p.Autoscaling == nil:
		v.required(path.Child("nodes"), "write the number of nodes, or autoscaling with minNodes and maxNodes")
	case p.Nodes != nil && *p.Nodes < 0:
		v.invalid(path.Child("nodes"), *p.Nodes, "must be at least 1")
	case p.Nodes != nil && *p.Nodes == 0:
		v.invalid(path.Child("nodes"), 0, "must be at least 1; remove the pool instead, or write autoscaling with minNodes 0")
	case p.Nodes != nil:
		v.evenlySpread(path.Child("nodes"), *p.Nodes, len(p.Zones))
	default:
		v.autoscaling(path.Child("autoscaling"), *p.Autoscaling)
	}
}

func (v *validator) autoscaling(path *field.Path, a Autoscaling) {
	v.notTooMany(path.Child("maxNodes"), a.MaxNodes)
	if a.MinNodes < 0 {
		v.invalid(path.Child("minNodes"), a.MinNodes, "must be at least 0")
	}
	switch {
	case a.MaxNodes < 1:
		v.invalid(path.Child("maxNodes"), a.MaxNodes, "must be at least 1; remove the pool instead")
	case a.MaxNodes < a.MinNodes:
		v.invalid(path.Child("maxNodes"), a.MaxNodes, "must be at least minNodes, which is %d", a.MinNodes)
	}
}

// gpu checks that a pool has the GPUs that its machine type has or takes.
func (v *validator) gpu(path *field.Path, p NodePool, m capacity.Machine) {
	switch {
	case p.GPU == nil && m.GPUs > 0:
		v.required(path, "%s comes with GPUs; write {type: %s, count: %d}", m.Type, m.GPUType, m.GPUs)
	case p.GPU == nil:
	case m.GPUs > 0:
		if p.GPU.Type != m.GPUType {
			v.invalid(path.Child("type"), p.GPU.Type, "%s comes with %s; write that, or choose another machine type", m.Type, m.GPUType)
		}
		if p.GPU.Count != m.GPUs {
			v.invalid(path.Child("count"), p.GPU.Count, "%s comes with %d GPUs; write %d, or choose another machine type", m.Type, m.GPUs, m.GPUs)
		}
	case m.TakesGPUs():
		v.attachedGPU(path, *p.GPU, m)
	default:
		v.forbidden(path, "%s takes no GPUs; remove gpu, or choose a machine type of a2, a3, g2 or n1", m.Type)
	}
}

func (v *validator) attachedGPU(path *field.Path, gpu GPU, m capacity.Machine) {
	if !oneOf(v, path.Child("type"), gpu.Type, capacity.AttachableGPUTypes()...) {
		return
	}
	counts := m.AttachableCounts(gpu.Type)
	if slices.Contains(counts, gpu.Count) {
		return
	}
	if len(counts) == 0 {
		v.invalid(path.Child("type"), gpu.Type, "cannot be attached to as many vCPUs as those of %s; choose a smaller machine type", m.Type)
		return
	}
	v.invalid(path.Child("count"), gpu.Count, "%s takes %s of %s; write one of these, or choose another machine type", m.Type, or(numbers(counts)), gpu.Type)
}

func numbers(ns []int) []string {
	s := make([]string, len(ns))
	for i, n := range ns {
		s[i] = fmt.Sprint(n)
	}
	return s
}

// disk checks the boot disk. Its bounds are those of GKE (GKE API, NodeConfig)
// and Compute Engine ("Persistent Disk", 64 TB).
func (v *validator) disk(path *field.Path, p NodePool, m capacity.Machine) {
	types := []string{"pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"}
	if oneOf(v, path.Child("type"), p.Disk.Type, types...) && !slices.Contains(m.BootDisks(), p.Disk.Type) {
		v.invalid(path.Child("type"), p.Disk.Type, "is not for %s; write %s", m.Type, or(m.BootDisks()))
	}
	if p.Disk.SizeGB < 10 || p.Disk.SizeGB > 65536 {
		v.invalid(path.Child("sizeGb"), p.Disk.SizeGB, "must be from 10 to 65536")
	}
}

func (v *validator) labels(path *field.Path, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := path.Key(key)
		for _, message := range validation.IsQualifiedName(key) {
			v.invalid(at, key, "%s", message)
		}
		if domain := reservedDomain(key); domain != "" {
			v.invalid(at, key, "is in the domain %s, whose labels are set by GKE; write one with a prefix of your own, or none", domain)
		}
		for _, message := range validation.IsValidLabelValue(labels[key]) {
			v.invalid(at, labels[key], "%s", message)
		}
	}
}

// reservedDomain is the domain of a label's prefix that belongs to Kubernetes
// or to Google.
func reservedDomain(label string) string {
	prefix, _, ok := strings.Cut(label, "/")
	if !ok {
		return ""
	}
	for _, domain := range []string{"kubernetes.io", "k8s.io", "google.com"} {
		if prefix == domain || strings.HasSuffix(prefix, "."+domain) {
			return domain
		}
	}
	return ""
}

func (v *validator) taints(path *field.Path, taints []Taint) {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	identities := make([]identity, len(taints))
	for i, t := range taints {
		at := path.Index(i)
		identities[i] = identity{t.Key, t.Effect}
		v.name(at.Child("key"), t.Key, validation.IsQualifiedName)
		if t.Key == gpuTaint {
			v.invalid(at.Child("key"), t.Key, "is set on GPU pools by GKE itself, and refused a second time; remove the taint")
		}
		for _, message := range validation.IsValidLabelValue(t.Value) {
			v.invalid(at.Child("value"), t.Value, "%s", message)
		}
		oneOf(v, at.Child("effect"), t.Effect,
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
	}
	unique(identities, func(i, first int) {
		v.duplicate(path.Index(i), taints[i].Key+":"+string(taints[i].Effect), "is the key and effect of taints[%d]; write one of the two", first)
	})
}

// mostNodes is the number of nodes that a pool has at its maximum.
func (p NodePool) mostNodes() int {
	switch {
	case p.Nodes != nil:
		return max(0, *p.Nodes)
	case p.Autoscaling != nil:
		return max(0, p.Autoscaling.MaxNodes)
	}
	return 0
}

// machine is a pool's machine with the GPUs attached to it.
func (s *Stack) machine(p NodePool) (capacity.Machine, bool) {
	m, ok := s.machineType(p.MachineType)
	if ok && p.GPU != nil && m.TakesGPUs() {
		m = m.WithGPUs(p.GPU.Type, p.GPU.Count)
	}
	return m, ok
}

// SystemPoolName is the pool of everything that is not training: the cluster's
// own, or on an existing cluster one of the stack file's.
func (s *Stack) SystemPoolName() string {
	if s.Cluster.Existing != nil {
		return s.Cluster.Existing.SystemPool
	}
	return systemPoolName
}

// Pools are all node pools of the cluster: its system pool, and those of the stack
// file.
func (s *Stack) Pools() []NodePool {
	if s.Cluster.Existing != nil {
		return s.NodePools
	}
	system := NodePool{
		Name:        systemPoolName,
		MachineType: s.Cluster.SystemPool.MachineType,
		Nodes:       &s.Cluster.SystemPool.Nodes,
	}
	system.setDefaults(s)
	return append([]NodePool{system}, s.NodePools...)
}

// pool finds a node pool by its name.
func (s *Stack) pool(name string) (NodePool, bool) {
	for _, p := range s.Pools() {
		if p.Name == name {
			return p, true
		}
	}
	return NodePool{}, false
}

// poolNames are the names of the stack file's pools, in its order.
func (s *Stack) poolNames() []string {
	names := make([]string, len(s.NodePools))
	for i, p := range s.NodePools {
		names[i] = p.Name
	}
	return names
}

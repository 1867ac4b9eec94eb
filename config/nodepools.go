package config

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/gcp"
)

// systemPoolName is the name of the system pool of a cluster that is created. No
// pool of the stack file may be called so.
const systemPoolName = "system"

// longestPoolName is GKE's limit (GKE API, NodePool).
const longestPoolName = 40

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
	v.poolSize(path, p)
	m, known := v.machine(path.Child("machineType"), p.MachineType)
	if known {
		v.gpu(path.Child("gpu"), p, m)
	}
	v.maxPods(path.Child("maxPodsPerNode"), p.MaxPodsPerNode)
	v.taints(path.Child("taints"), p)
	if v.stack.Cluster.Existing != nil {
		return
	}
	if p.Name == systemPoolName {
		v.invalid(path.Child("name"), p.Name, "is the name of the cluster's system pool; choose another")
	}
	if !slices.Equal(p.Zones, v.stack.Cluster.Zones) {
		v.zones(path.Child("zones"), p.Zones)
	}
	v.labels(path.Child("labels"), p.Labels)
	v.provisioning(path, p)
	v.upgrade(path.Child("upgrade"), p.Upgrade)
	oneOf(v, path.Child("imageType"), p.ImageType, gcp.ImageCOS, gcp.ImageUbuntu)
	v.fastSocket(path.Child("fastSocket"), p)
	if known {
		v.ofSeries(path, p, m)
	}
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
	if v.stack.Cluster.Existing == nil {
		oneOf(v, path.Child("locationPolicy"), a.LocationPolicy, "ANY", "BALANCED")
	}
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

// maxPods checks how many pods a node may run (GKE, "Configure maximum Pods per
// node").
func (v *validator) maxPods(path *field.Path, pods int) {
	if pods < 8 || pods > 256 {
		v.invalid(path, pods, "must be from 8 to 256, as GKE takes no other; leave it out for 110")
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

func (v *validator) taints(path *field.Path, p NodePool) {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	identities := make([]identity, len(p.Taints))
	for i, t := range p.Taints {
		at := path.Index(i)
		identities[i] = identity{t.Key, t.Effect}
		v.name(at.Child("key"), t.Key, validation.IsQualifiedName)
		v.ownTaint(at.Child("key"), t.Key, p)
		for _, message := range validation.IsValidLabelValue(t.Value) {
			v.invalid(at.Child("value"), t.Value, "%s", message)
		}
		oneOf(v, at.Child("effect"), t.Effect,
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
	}
	unique(identities, func(i, first int) {
		v.duplicate(path.Index(i), p.Taints[i].Key+":"+string(p.Taints[i].Effect), "is the key and effect of taints[%d]; write one of the two", first)
	})
}

// ownTaint refuses the taints that pools get without being asked.
func (v *validator) ownTaint(path *field.Path, key string, p NodePool) {
	switch {
	case key == gcp.TaintGPU:
		v.invalid(path, key, "is set on GPU pools by GKE itself, and refused a second time; remove the taint")
	case key == gcp.TaintSpot && p.Spot:
		v.invalid(path, key, "is set on every spot pool; remove the taint")
	case key == gcp.TaintQueued && p.QueuedProvisioning:
		v.invalid(path, key, "is set on pools with queuedProvisioning by GKE itself; remove the taint")
	}
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
func (s *Stack) machine(p NodePool) (gcp.Machine, bool) {
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

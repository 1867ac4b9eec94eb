package jobspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Context is the part of the stack file that jobs depend on.
type Context struct {
	Pools []Pool
	// Volumes are the volumes of the stack, and StorageKey is the key that declares them.
	Volumes    []Volume
	StorageKey string
	// VolumesUnknown is true if the volumes have problems that were reported already.
	VolumesUnknown bool
	// Created is true if the stack creates the cluster.
	Created bool
	// OneNode is true if the cluster has one node.
	OneNode bool
}

// Pool describes a node pool to the rules of jobs.
type Pool struct {
	Name string
	// KeepsOff is the key of the taint that keeps pods without tolerations off the nodes, or
	// "". It is not the GPU taint, which GKE has pods tolerate that request GPUs.
	KeepsOff string
	GPUs     bool // the nodes have GPUs
	COS      bool // the nodes run Container-Optimized OS
}

// Volume describes a volume of the stack to the rules of jobs.
type Volume struct {
	Name, Claim string
	Sidecar     bool // GKE adds a container to pods that mount the volume
	OneNode     bool // the volume is a directory of one node
	AccessModes []corev1.PersistentVolumeAccessMode
}

func (c Context) pool(name string) Pool {
	if i := slices.IndexFunc(c.Pools, func(pool Pool) bool { return pool.Name == name }); i >= 0 {
		return c.Pools[i]
	}
	return Pool{}
}

func (c Context) volume(name string) (Volume, bool) {
	if i := slices.IndexFunc(c.Volumes, func(v Volume) bool { return v.Name == name }); i >= 0 {
		return c.Volumes[i], true
	}
	return Volume{}, false
}

// reachesAll reports whether pods on all nodes can mount the volume.
func (v Volume) reachesAll(mount Mount) bool {
	return !v.OneNode && (slices.Contains(v.AccessModes, corev1.ReadWriteMany) ||
		slices.Contains(v.AccessModes, corev1.ReadOnlyMany) && mount.ReadOnly)
}

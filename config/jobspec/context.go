package jobspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Context is what the jobs need to know of the rest of the stack file.
type Context struct {
	// Pools are the node pools of the cluster.
	Pools []Pool
	// Volumes are the volumes of the stack, which StorageKey declares.
	Volumes    []Volume
	StorageKey string
	// VolumesUnknown says that the volumes have a problem that is reported already.
	VolumesUnknown bool
	// OneNode says that the cluster has one node.
	OneNode bool
}

// Pool is a node pool as far as jobs are concerned with it.
type Pool struct {
	Name string
	// KeepsOff is the taint that keeps pods without tolerations off the nodes, or
	// empty. GKE adds the toleration of the GPU taint to pods that request GPUs.
	KeepsOff string
	// GPUs says that the nodes have GPUs.
	GPUs bool
	// COS says that the nodes run Container-Optimized OS.
	COS bool
}

// Volume is a volume of the stack as far as jobs are concerned with it.
type Volume struct {
	Name, Claim string
	// Sidecar says that GKE adds a container to pods that mount the volume.
	Sidecar bool
	// OneNode says that the volume is a directory of one node.
	OneNode     bool
	AccessModes []corev1.PersistentVolumeAccessMode
}

func (p Context) pool(name string) Pool {
	if i := slices.IndexFunc(p.Pools, func(pool Pool) bool { return pool.Name == name }); i >= 0 {
		return p.Pools[i]
	}
	return Pool{}
}

func (p Context) volume(name string) (Volume, bool) {
	if i := slices.IndexFunc(p.Volumes, func(v Volume) bool { return v.Name == name }); i >= 0 {
		return p.Volumes[i], true
	}
	return Volume{}, false
}

func (p Context) volumeNames() []string {
	names := make([]string, len(p.Volumes))
	for i, v := range p.Volumes {
		names[i] = v.Name
	}
	return names
}

// reachesAll reports whether pods on many nodes can have a mount of the volume.
func (v Volume) reachesAll(mount Mount) bool {
	return !v.OneNode && (slices.Contains(v.AccessModes, corev1.ReadWriteMany) ||
		slices.Contains(v.AccessModes, corev1.ReadOnlyMany) && mount.ReadOnly)
}

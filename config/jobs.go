package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/jobspec"
	"persia/config/poolspec"
	"persia/gcp"
)

// jobContext is what jobs need to know of the rest of the stack file.
func (s *Stack) jobContext() jobspec.Context {
	context := jobspec.Context{Volumes: s.jobVolumes(), StorageKey: storageKey, OneNode: s.Cluster.Existing == nil && s.addresses().Nodes == 1}
	for _, pool := range s.Pools() {
		context.Pools = append(context.Pools, jobspec.Pool{Name: pool.Name, KeepsOff: keepsOff(pool), GPUs: pool.GPU != nil, COS: pool.ImageType == gcp.ImageCOS})
	}
	return context
}

// jobVolumes are the volumes of the stack as far as jobs are concerned with them.
func (s *Stack) jobVolumes() []jobspec.Volume {
	volumes := make([]jobspec.Volume, len(s.Storage))
	for i, v := range s.Storage {
		volumes[i] = jobspec.Volume{Name: v.Name, Claim: v.Claim, Sidecar: v.MountedBySidecar(), OneNode: v.OnOneNode(), AccessModes: v.AccessModes}
	}
	return volumes
}

// keepsOff is the taint that keeps pods without tolerations off a pool. GKE adds the
// toleration of the GPU taint to pods that request GPUs.
func keepsOff(pool poolspec.Pool) string {
	if pool.Spot {
		return gcp.TaintSpot
	}
	for _, taint := range pool.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			return taint.Key
		}
	}
	return ""
}

// jobs checks the jobs, and that each role fits a node of its pool.
func (v *validator) jobs() {
	context := v.stack.jobContext()
	context.VolumesUnknown = !v.Decoded(field.NewPath(storageKey))
	jobspec.Check(v.Problems, v.stack.Jobs, context)
	for i := range v.stack.Jobs {
		j := &v.stack.Jobs[i]
		for _, role := range j.Roles() {
			at := j.At().Child(role.Field)
			if pool, ok := v.assignment(at, role.Field, role.NodePool, role.Resources, v.stack.rolePools()); ok {
				v.gpusFit(at.Child("resources"), role.Field, role.Resources, pool)
				v.checkpointFits(j.At().Child("hashmapShards"), j, role, pool)
			}
		}
	}
}

// rolePools are the node pools that a role may name: those of the stack, or the system
// pool of a cluster that has no others.
func (s *Stack) rolePools() []string {
	if len(s.NodePools) == 0 {
		return []string{s.SystemPoolName()}
	}
	return s.poolNames()
}

// serviceNames checks that no job makes a service that a NATS makes too. Two jobs
// cannot: their names differ, and no suffix ends with another.
func (v *validator) serviceNames() {
	for _, cluster := range v.stack.NATSClusters() {
		for _, j := range v.stack.Jobs {
			for _, service := range j.Services() {
				if service == cluster.Name || service == cluster.Name+"-mgmt" {
					v.Invalid(j.At().Child("name"), j.Name, "creates the Service %s, which %s creates too; rename one of them", service, cluster.NamePath(field.NewPath(natsKey)))
				}
			}
		}
	}
}

// UsesOperator reports whether a job is left to PERSIA's operator.
func (s *Stack) UsesOperator() bool {
	return slices.ContainsFunc(s.Jobs, func(j jobspec.Job) bool { return j.Engine == jobspec.EngineOperator })
}

// MountsHostPaths reports whether a job has directories of its nodes among its
// volumes.
func (s *Stack) MountsHostPaths() bool {
	return slices.ContainsFunc(s.Jobs, func(j jobspec.Job) bool { return j.MountsHostPaths() })
}

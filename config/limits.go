package config

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/poolspec"
)

// limitWarnings are about limits that no node reaches: a container that comes near one
// takes the node down first.
func (s warner) limitWarnings() []string {
	var warnings []string
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			if pool, ok := s.Pool(role.NodePool); ok {
				warnings = append(warnings, s.limitsBeyond(s.Jobs[i].At().Child(role.Field, "resources", "limits"), role.Resources, pool)...)
			}
		}
	}
	for _, c := range s.NATSClusters() {
		if pool, ok := s.Pool(c.NodePool); ok {
			warnings = append(warnings, s.limitsBeyond(c.ResourcesPath(field.NewPath(natsKey)).Child("limits"), c.Resources, pool)...)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(warnings)))
}

func (s warner) limitsBeyond(path *field.Path, r corev1.ResourceRequirements, pool poolspec.Pool) []string {
	machine, ok := pool.Machine(s.MachineTypes)
	if !ok {
		return nil
	}
	has := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(machine.CPUs), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(machine.MemoryBytes, resource.BinarySI),
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(has)) {
		all, limit := has[name], r.Limits[name]
		if limit.Cmp(all) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %s is more than the %s of a %s, the machine type of pool %s, so it limits nothing; write less",
				s.pathOf(path.Key(string(name))), limit.String(), all.String(), machine.Type, pool.Name))
		}
	}
	return warnings
}

// spotWarnings are about what is lost with a machine that Google takes back.
func (s warner) spotWarnings() []string {
	var warnings []string
	for i := range s.Jobs {
		role := s.Jobs[i].EmbeddingParameterServer
		if pool, ok := s.Pool(role.NodePool); ok && pool.Spot {
			warnings = append(warnings, fmt.Sprintf("%s: pool %s has spot machines, and each time Google preempts one, the job loses its embeddings since the last checkpoint; choose a pool without spot",
				s.pathOf(s.Jobs[i].At().Child("embeddingParameterServer", "nodePool")), pool.Name))
		}
	}
	return warnings
}

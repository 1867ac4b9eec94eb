package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/nodepool"
)

// validator checks a stack whose defaults are set. Each rule says what is allowed
// and what to do.
type validator struct {
	*check.Problems
	stack *Stack
}

func (v *validator) validate() {
	v.project()
	if v.stack.Cluster.Existing != nil {
		v.existingCluster()
	} else {
		v.stack.Cluster.Check(v.Problems, field.NewPath(clusterKey), v.stack.addresses())
		v.systemPool()
		v.bucketNeeds()
	}
	v.stack.MachineTypes.CheckAll(v.Problems, field.NewPath(machineTypesKey))
	pools := field.NewPath(nodePoolsKey)
	place := v.stack.poolPlace()
	place.Unknown = !v.Decoded(field.NewPath(clusterKey))
	nodepool.Check(v.Problems, pools, v.stack.NodePools, place, v.stack.MachineTypes)
	v.stack.NVIDIADriver.Check(v.Problems, field.NewPath(nvidiaDriverKey), pools, v.stack.NodePools)
	v.volumes()
	v.nats()
	v.jobs()
	v.serviceNames()
	if v.stack.PEDL != nil {
		v.pedl()
	}
	if v.None() {
		v.capacity()
	}
}

// bucketNeeds checks that volumes over buckets have what mounts them and what
// lets pods into them.
func (v *validator) bucketNeeds() {
	c := v.stack.Cluster
	i := slices.IndexFunc(v.stack.Volumes, func(volume Volume) bool { return volume.GCSFuse != nil })
	if i < 0 {
		return
	}
	if driver := field.NewPath(clusterKey, "csiDrivers", "gcsFuse"); !c.CSIDrivers.GCSFuse && v.Decoded(driver) {
		v.Invalid(driver, false, "must be true, as this driver mounts the bucket of volumes[%d]; remove it, or use volumes of another kind", i)
	}
	if identity := field.NewPath(clusterKey, "workloadIdentity"); !c.WorkloadIdentity && v.Decoded(identity) {
		v.Invalid(identity, false, "must be true, as jobs reach the bucket of volumes[%d] by an identity of their own; remove it, or use volumes of another kind", i)
	}
}

package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/poolspec"
)

// validator checks a stack whose defaults are set. Each rule says what is allowed
// and what to do.
type validator struct {
	*check.Problems
	stack *Stack
}

func (v *validator) validate() {
	if v.stack.Cluster.Existing != nil {
		v.existingCluster()
	} else {
		check.Project(v.Problems, field.NewPath(projectKey), v.stack.Project)
		v.stack.Cluster.Check(v.Problems, field.NewPath(clusterKey), v.stack.addresses())
		v.systemPool()
	}
	v.stack.MachineTypes.CheckAll(v.Problems, field.NewPath(MachineTypesKey))
	pools := field.NewPath(nodePoolsKey)
	context := v.stack.poolContext()
	context.Unknown = !v.Decoded(field.NewPath(clusterKey))
	poolspec.Check(v.Problems, pools, v.stack.NodePools, context, v.stack.MachineTypes)
	v.stack.NVIDIADriver.Check(v.Problems, field.NewPath(nvidiaDriverKey), pools, v.stack.NodePools)
	v.stack.Images.Check(v.Problems, field.NewPath(imagesKey), v.stack.imageContext())
	v.stack.Operator.Check(v.Problems, field.NewPath(operatorKey), v.stack.UsesOperator())
	v.storage()
	v.nats()
	v.jobs()
	v.serviceNames()
	v.pedl()
	if v.None() {
		v.capacity()
	}
}

package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/poolspec"
)

// check reports the problems of a stack whose defaults are set.
func (s *Stack) check(p *check.Problems) {
	if s.Cluster.Existing != nil {
		s.checkExistingCluster(p)
	} else {
		check.Project(p, field.NewPath(projectKey), s.Project)
		s.Cluster.Check(p, field.NewPath(clusterKey), s.addresses())
		s.checkSystemPool(p)
	}
	s.MachineTypes.CheckAll(p, field.NewPath(MachineTypesKey))
	pools := field.NewPath(nodePoolsKey)
	context := s.poolContext()
	context.Unknown = !p.Decoded(field.NewPath(clusterKey))
	poolspec.Check(p, pools, s.NodePools, context, s.MachineTypes)
	s.NVIDIADriver.Check(p, field.NewPath(nvidiaDriverKey), pools, s.NodePools)
	s.Images.Check(p, field.NewPath(imagesKey), s.imageContext())
	s.Operator.Check(p, field.NewPath(operatorKey), s.UsesOperator())
	s.checkStorage(p)
	s.checkNATS(p)
	s.checkJobs(p)
	s.checkQueues(p)
	s.checkPEDL(p)
	if p.None() {
		s.checkCapacity(p)
		s.checkQuotas(p)
	}
}

package config

import (
	"persia/config/poolspec"
	"persia/config/queuespec"
)

// resolve fills in the defaults that one topic takes from another. Each topic has its own
// defaults by then.
func (s *Stack) resolve() {
	if s.Cluster.Existing == nil {
		s.Cluster.Resolve(poolspec.Pool{Zones: s.Cluster.Zones}.ZoneCount())
	}
	s.Images.Resolve(s.imageContext())
	s.NVIDIADriver.Resolve()
	s.NATS.Resolve(s.SystemPoolName())
	s.Queue.Resolve()
	for i := range s.Jobs {
		s.Jobs[i].Resolve()
		if s.HasQueues() && s.Jobs[i].Queue != "" && s.Jobs[i].Priority == "" {
			s.Jobs[i].Priority = queuespec.DefaultPriority
		}
	}
	// The pools' upgrades depend on what runs on them.
	for i := range s.NodePools {
		s.NodePools[i].Resolve(s.poolContext(), s.NVIDIADriver, s.MachineTypes)
	}
	s.Cluster.Network.Resolve(s.addresses(), s.Cluster.PrivateNodes) // the pools determine the ranges
	for i := range s.Storage {
		s.Storage[i].Resolve(s.volumeContext())
	}
	s.dropNATSVariables()
	if s.PEDL != nil {
		s.PEDL.Resolve(s.pedlContext())
	}
	s.labelAgentPools()
}

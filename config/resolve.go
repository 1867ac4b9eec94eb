package config

import "persia/config/poolspec"

// resolve fills in the defaults that one topic takes from another. Each topic has its own
// defaults by then.
func (s *Stack) resolve() {
	if s.Cluster.Existing == nil {
		s.Cluster.Resolve(poolspec.Pool{Zones: s.Cluster.Zones}.ZoneCount())
	}
	s.Images.Resolve(s.imageContext())
	s.NVIDIADriver.Resolve()
	s.NATS.Resolve(s.SystemPoolName())
	for i := range s.Jobs {
		s.Jobs[i].Resolve()
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

package config

import "persia/config/poolspec"

// resolver completes a stack.
type resolver struct{ *Stack }

// resolve completes what one topic takes from another, once each has its defaults.
func (s resolver) resolve() {
	if s.Cluster.Existing == nil {
		s.Cluster.Resolve(poolspec.Pool{Zones: s.Cluster.Zones}.ZoneCount())
	}
	s.Images.Resolve(s.imageContext())
	s.NVIDIADriver.Resolve()
	for i := range s.NodePools {
		s.NodePools[i].Resolve(s.poolContext(), s.NVIDIADriver, s.MachineTypes)
	}
	// The ranges hold all pools.
	s.Cluster.Network.Resolve(s.addresses(), s.Cluster.PrivateNodes)
	for i := range s.Storage {
		s.Storage[i].Resolve(s.volumeContext())
	}
	s.NATS.Resolve(s.SystemPoolName())
	for i := range s.Jobs {
		s.Jobs[i].Resolve()
	}
	s.dropOwnNATS()
	if s.PEDL != nil {
		s.PEDL.Resolve(s.pedlContext())
	}
	s.hostAgents()
}

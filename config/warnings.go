package config

import "persia/config/check"

// Warnings returns the warnings about a valid stack, as PATH: TEXT.
func (s *Stack) Warnings() []string { return s.warnings }

// warn adds the warnings about a valid stack.
func (s *Stack) warn(p *check.Problems) {
	for _, v := range s.StoredVolumes() {
		v.Warn(p, s.Cluster.Region)
	}
	s.warnOfImages(p)
	s.warnOfSizes(p)
	s.warnOfPools(p)
	s.warnOfServers(p)
	s.warnOfExposure(p)
	s.warnOfLimits(p)
	s.warnOfSpot(p)
	s.warnOfPEDL(p)
	s.warnOfJobs(p)
}

package config

import (
	"fmt"

	"persia/config/jobspec"
	"persia/config/pod"
)

// mostNATS is how many servers NATS is commonly run with at most.
const mostNATS = 9

// warner finds what a valid stack may not have meant.
type warner struct{ *Stack }

// Warnings are what a valid stack may not have meant.
func (s *Stack) Warnings() []string {
	w := warner{s}
	var warnings []string
	for _, v := range s.StoredVolumes() {
		warnings = append(warnings, v.Warnings(s.Cluster.Region)...)
	}
	warnings = append(warnings, w.imageWarnings()...)
	warnings = append(warnings, w.natsWarnings()...)
	warnings = append(warnings, w.exposureWarnings()...)
	warnings = append(warnings, w.limitWarnings()...)
	warnings = append(warnings, w.spotWarnings()...)
	warnings = append(warnings, w.pedlWarnings()...)
	return append(warnings, w.jobWarnings()...)
}

func (s warner) jobWarnings() []string {
	var warnings []string
	for i := range s.Jobs {
		j := &s.Jobs[i]
		warnings = append(warnings, j.Warnings(storageKey, s.pathOf)...)
		if gpu, ok := s.unsupportedGPU(j); ok {
			warnings = append(warnings, fmt.Sprintf("%s: the default image contains PyTorch 1.8, which does not support %s; write an image with a PyTorch version that does",
				s.pathOf(j.At().Child("nnWorker", "image")), gpu))
		}
	}
	return warnings
}

// unsupportedGPU is the type of the trainers' GPUs if upstream's default image cannot
// compute on them.
func (s warner) unsupportedGPU(j *jobspec.Job) (string, bool) {
	pool, ok := s.Pool(j.NNWorker.NodePool)
	if !ok || pool.GPU == nil || j.NNWorker.Image != "" || pod.GPUs(j.NNWorker.Resources) == 0 {
		return "", false
	}
	return pool.GPU.Type, !jobspec.DefaultImageComputesOn(pool.GPU.Type)
}

package config

import (
	"fmt"

	"persia/config/check"
	"persia/config/job"
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
		if j.Engine == job.EngineOperator {
			warnings = append(warnings, fmt.Sprintf("%s: the operator does not pin pods to their node pools, which only the capacity plan uses: each pod runs on any node with room for it", s.pathOf(j.At().Child("engine"))))
		}
		if loose := j.LooseImages(); len(loose) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: the image of %s has the tag latest, so pods that start later might run another image; write an image with a digest, like persiaml/persia-cpu-runtime@sha256:…",
				s.pathOf(j.At()), check.And(loose)))
		}
		if gpu, ok := s.unsupportedGPU(j); ok {
			warnings = append(warnings, fmt.Sprintf("%s: the default image contains PyTorch 1.8, which does not support %s; write an image with a PyTorch version that does",
				s.pathOf(j.At().Child("nnWorker", "image")), gpu))
		}
		if j.MountsHostPaths() {
			warnings = append(warnings, fmt.Sprintf("%s: hostPath volumes are directories of the nodes, and require the namespace of all jobs to admit privileged pods; use mounts with a volume of %s", s.pathOf(j.At().Child("volumes")), storageKey))
		}
	}
	return warnings
}

// unsupportedGPU is the type of the trainers' GPUs if upstream's default image cannot
// compute on them.
func (s warner) unsupportedGPU(j *job.Job) (string, bool) {
	pool, ok := s.pool(j.NNWorker.NodePool)
	if !ok || pool.GPU == nil || j.NNWorker.Image != "" || pod.GPUs(j.NNWorker.Resources) == 0 {
		return "", false
	}
	return pool.GPU.Type, !job.DefaultImageComputesOn(pool.GPU.Type)
}

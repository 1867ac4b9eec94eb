package jobspec

import (
	corev1 "k8s.io/api/core/v1"

	"persia/config/check"
)

// Warn warns of settings of a valid job that the user may not have meant. StorageKey is the key of
// the stack's volumes.
func (j *Job) Warn(p *check.Problems, storageKey string) {
	if j.Engine == EngineOperator {
		p.Warn(j.at.Child("engine"), "the operator does not pin pods to their node pools, which only the capacity plan uses: each pod runs on any node with room for it")
		if j.RestartPolicy == corev1.RestartPolicyAlways {
			p.Warn(j.at.Child("restartPolicy"), "pods that have finished start again and train over the existing results, so the job never ends and has no completion; write Never")
		}
		if j.EnableMetrics {
			p.Warn(j.at.Child("enableMetrics"), "PERSIA's operator runs the metrics gateway by the image prom/pushgateway:latest, and no setting changes that; write enableMetrics: false if images must not change")
		}
	}
	if loose := j.looseByFile(); len(loose) > 0 {
		p.Warn(j.at, "the image of %s has the tag latest, so pods that start later might run another image; write an image with a digest, like persiaml/persia-cpu-runtime@sha256:…", check.And(loose))
	}
	if j.MountsHostPaths() {
		p.Warn(j.at.Child("volumes"), "hostPath volumes are directories of the nodes, and require the namespace of all jobs to admit privileged pods; use mounts with a volume of %s", storageKey)
	}
}

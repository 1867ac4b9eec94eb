package jobspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Warnings returns what a valid job may not have meant. StorageKey is the key of the stack's
// volumes, and pathOf returns where the user wrote the value of a path.
func (j *Job) Warnings(storageKey string, pathOf func(*field.Path) string) []string {
	var warnings []string
	warn := func(path *field.Path, text string) { warnings = append(warnings, pathOf(path)+": "+text) }
	if j.Engine == EngineOperator {
		warn(j.at.Child("engine"), "the operator does not pin pods to their node pools, which only the capacity plan uses: each pod runs on any node with room for it")
		if j.RestartPolicy == corev1.RestartPolicyAlways {
			warn(j.at.Child("restartPolicy"), "pods that have finished start again and train over the existing results, so the job never ends and has no completion; write Never")
		}
		if j.EnableMetrics {
			warn(j.at.Child("enableMetrics"), "PERSIA's operator runs the metrics gateway by the image prom/pushgateway:latest, and no setting changes that; write enableMetrics: false if images must not change")
		}
	}
	if loose := j.LooseImages(); len(loose) > 0 {
		warn(j.at, "the image of "+check.And(loose)+" has the tag latest, so pods that start later might run another image; write an image with a digest, like persiaml/persia-cpu-runtime@sha256:…")
	}
	if j.MountsHostPaths() {
		warn(j.at.Child("volumes"), "hostPath volumes are directories of the nodes, and require the namespace of all jobs to admit privileged pods; use mounts with a volume of "+storageKey)
	}
	return warnings
}

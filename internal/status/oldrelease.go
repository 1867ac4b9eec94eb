package status

import (
	"fmt"
	"regexp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
)

var natsURL = regexp.MustCompile(config.EnvNATS + ` nats://([^.:/]+)\.` + config.NATSNamespace + `\b`)

// olderContract returns the contract of a job that a release without contracts has created, as far as objects tell.
func olderContract(completion batchv1.Job, pods []corev1.Pod) config.Contract {
	contract := config.Contract{Useful: completion.Annotations["persia.com/predicted-useful-hours"]}
	for _, pod := range pods {
		if name := natsURL.FindStringSubmatch(fmt.Sprint(pod.Spec.Containers)); name != nil {
			contract.NATS = name[1]
		}
	}
	return contract
}

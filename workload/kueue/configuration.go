package kueue

import (
	"fmt"

	"persia/kube"
)

// configuration is Kueue's configuration file.
//
// The disabled features need permissions and objects that the program does not create: multiple
// clusters, racks, and the API of pending jobs, whose APIServices block the deletion of every
// namespace while Kueue is down.
//
// There is one replica, which needs no election, and an election ends Kueue when it admits hundreds of
// jobs at once: the renewal of the lease waits behind the requests for the jobs (kueue 15537). Upstream's
// manifests have the same limits of requests.
//
// A job whose pods do not all become ready in time, because no node has room for one of them,
// releases its nodes and waits again, and so does a job that has lost pods, for instance with their
// node. No number of tries ends it.
func configuration(jobNamespace string, startMinutes int) string {
	return fmt.Sprintf(`apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: %s
health:
  healthProbeBindAddress: :%d
metrics:
  bindAddress: "0"
webhook:
  port: %d
  certDir: %s
leaderElection:
  leaderElect: false
clientConnection: {qps: 50, burst: 100}
internalCertManagement:
  enable: true
  webhookServiceName: %[5]s
  webhookSecretName: %[6]s
featureGates:
  MultiKueue: false
  TopologyAwareScheduling: false
  VisibilityOnDemand: false
integrations:
  frameworks: [jobset.x-k8s.io/jobset]
manageJobsWithoutQueueName: false
managedJobsNamespaceSelector:
  matchLabels:
    kubernetes.io/metadata.name: %[7]s
waitForPodsReady:
  timeout: %[8]dm
  recoveryTimeout: %[8]dm
  blockAdmission: false
  requeuingStrategy: {timestamp: Eviction, backoffBaseSeconds: 60, backoffMaxSeconds: 3600}
`, Namespace, kube.HealthPort, kube.WebhookPort, certificateFolder, serviceName, certificateName, jobNamespace, startMinutes)
}

package nats

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
)

// registerMonitoring registers the collector of the servers' metrics, if the cluster has
// Managed Service for Prometheus and the servers serve metrics.
func registerMonitoring(ctx *pulumi.Context, name string, args ClusterArgs, child pulumi.ResourceOption) error {
	if !args.ManagedPrometheus || !args.NATS.Metrics {
		return nil
	}
	_, err := kube.Register(ctx, name, podMonitoring(args.NATS), child)
	return err
}

func podMonitoring(nats config.NATS) *kube.PodMonitoring {
	return kube.NewPodMonitoring(kube.Meta(Namespace, nats.Name, kube.Labels("nats", nats.Name)), kube.PodMonitoringSpec{
		Selector:  metav1.LabelSelector{MatchLabels: serverLabels(nats)},
		Endpoints: kube.Scrape(metricsPort),
	})
}

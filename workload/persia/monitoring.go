package persia

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
)

// registerMonitoring registers what collects the metrics of all jobs, where there is
// something that does, and what shows them.
func registerMonitoring(ctx *pulumi.Context, name string, args NamespaceArgs, child pulumi.ResourceOption) error {
	if args.ManagedPrometheus {
		if _, err := kube.Register(ctx, name, podMonitoring(), child, kube.After(args.MonitoringNeeds)); err != nil {
			return err
		}
	}
	_, err := kube.Register(ctx, dashboardName, dashboardConfigMap(), child)
	return err
}

// podMonitoring makes Managed Service for Prometheus scrape the metrics gateways of all jobs. The
// service sets the labels job and instance itself, and renames pushed labels of these names to
// exported_job and exported_instance. So each series gets its job from a label of the pod.
func podMonitoring() *kube.PodMonitoring {
	const name = "metrics-gateways"
	return kube.NewPodMonitoring(kube.Meta(NamespaceName, name, kube.Labels("metrics-gateway", name)), kube.PodMonitoringSpec{
		// By upstream's label, and by number since upstream gives the port no
		// name: the gateways that PERSIA's operator makes are scraped, too.
		Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: scrapedLabel, Operator: metav1.LabelSelectorOpExists,
		}}},
		Endpoints:    kube.Scrape(metricsGatewayPort),
		TargetLabels: &kube.TargetLabels{FromPod: []kube.LabelMapping{{From: JobLabel}}},
	})
}

package persia

import (
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
)

// NamespaceName is the Kubernetes namespace of a stack's jobs.
const NamespaceName = config.JobNamespace

// NamespaceArgs describes where jobs run.
type NamespaceArgs struct {
	// HostPaths says that jobs mount directories of their nodes, which no Pod Security Standard but the privileged
	// allows.
	HostPaths bool
	// Monitoring is the service that collects metrics and evaluates alerts.
	Monitoring kube.Monitoring
	// MonitoringNeeds are created before the PodMonitoring and the alerts: a Deployment. They go through a webhook
	// that GKE runs on the nodes, and that may not serve yet when a new cluster has no pod of the stack.
	MonitoringNeeds []pulumi.CustomResource
}

var (
	//go:embed namespace.yaml
	namespaceManifest string
	// dashboard shows the metrics of all jobs in Grafana.
	//go:embed dashboard.json
	dashboard string
	// alerts are alerting rules of all jobs.
	//go:embed alerts.yaml
	alerts string
)

// NewNamespace registers the namespace of the stack's jobs, their start scripts, and the dashboard. It returns what must
// exist before every pod of the namespace.
func NewNamespace(r *kube.Registrar, name string, args NamespaceArgs) []pulumi.CustomResource {
	objects := r.Component("persia:workload:Namespace", name)
	security := "baseline"
	if args.HostPaths {
		security = "privileged"
	}
	of := kube.ByKind(namespaceManifest, map[string]any{"Security": security, "Dashboard": dashboard})
	namespace := kube.Needs(objects.Add(name, of["Namespace"], nil))
	closed := objects.Add(name+"-closed", of["NetworkPolicy"], namespace)
	launch := objects.Add(launchName(), launchConfigMap(), namespace)
	monitored := append(namespace, args.MonitoringNeeds...)
	if args.Monitoring == kube.ManagedPrometheus {
		objects.Add(name, of["PodMonitoring"], monitored)
	}
	if args.Monitoring != "" {
		objects.Add(name, kube.Alerts(args.Monitoring, kube.Meta(NamespaceName, name, kube.Labels("alerts", name)), alerts), monitored)
	}
	objects.Add("persia-dashboard", of["ConfigMap"], namespace)
	return kube.Needs(closed, launch)
}

// PodsOf selects the pods of a job, whichever engine creates them. Without a job, it selects the pods of all jobs of
// the stack.
func PodsOf(job string) metav1.LabelSelector {
	if job == "" {
		exists := metav1.LabelSelectorRequirement{Key: config.JobLabel, Operator: metav1.LabelSelectorOpExists}
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{exists}}
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{config.JobLabel: job}}
}

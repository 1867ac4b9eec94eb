package persia

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
)

// NamespaceName is the Kubernetes namespace of a stack's jobs.
const NamespaceName = config.JobNamespace

// NamespaceArgs describes where jobs run.
type NamespaceArgs struct {
	// HostPaths says that jobs mount directories of their nodes, which no Pod
	// Security Standard but the privileged allows.
	HostPaths bool
	// Monitoring is the service that collects metrics and evaluates alerts.
	Monitoring kube.Monitoring
	// MonitoringNeeds are created before the PodMonitoring and the alerts: a Deployment. They
	// go through a webhook that GKE runs on the nodes, and that may not serve yet when a
	// new cluster has no pod of the stack.
	MonitoringNeeds []pulumi.CustomResource
}

// NewNamespace registers the namespace of the stack's jobs, their start scripts, and the dashboard. A
// default policy denies all traffic; each job has a policy of its own. NewNamespace returns what must exist
// before every pod of the namespace.
func NewNamespace(r *kube.Registrar, name string, args NamespaceArgs) []pulumi.CustomResource {
	objects := r.Component("persia:workload:Namespace", name)
	security := "baseline"
	if args.HostPaths {
		security = "privileged"
	}
	namespace := kube.Needs(objects.Add(name, &corev1.Namespace{ObjectMeta: kube.Meta("", NamespaceName, kube.PodSecurity(security))}, nil))
	closed := objects.Add(name+"-closed", closedPolicy(), namespace)
	launch := objects.Add(name+"-launch", launchConfigMap(), namespace)
	monitored := append(namespace, args.MonitoringNeeds...)
	if args.Monitoring == kube.ManagedPrometheus {
		objects.Add(name, podMonitoring(), monitored)
	}
	if args.Monitoring != "" {
		objects.Add(name, kube.Alerts(args.Monitoring, kube.Meta(NamespaceName, name, kube.Labels("alerts", name)), alerts), monitored)
	}
	objects.Add(dashboardName, dashboardConfigMap(), namespace)
	return kube.Needs(closed, launch)
}

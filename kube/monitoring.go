package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Monitoring is the API group of the service that evaluates alerts in a cluster, or "" for none.
type Monitoring string

// PrometheusOperator is on clusters that others have made.
const PrometheusOperator Monitoring = "monitoring.coreos.com"

// ManagedPrometheus is Managed Service for Prometheus, with PodMonitorings and Rules. Their webhook runs on the nodes, so that a new
// cluster, whose nodes run no pod yet, refuses them (GoogleCloudPlatform/ai-on-gke, issue 402): a
// PodMonitoring comes after a Deployment that is available. No other webhook that GKE installs and
// that an object of the program passes runs there.
const ManagedPrometheus Monitoring = "monitoring.googleapis.com"

// Alerts returns an object with alerting rules. Groups is the text of one of Prometheus' rule files.
func Alerts(by Monitoring, meta metav1.ObjectMeta, groups string) *Custom[map[string]any] {
	kinds := map[Monitoring]string{ManagedPrometheus: "Rules", PrometheusOperator: "PrometheusRule"}
	alerts := &Custom[map[string]any]{
		TypeMeta:   metav1.TypeMeta{APIVersion: string(by) + "/v1", Kind: kinds[by]},
		ObjectMeta: meta,
	}
	if err := yaml.Unmarshal([]byte(groups), &alerts.Spec); err != nil {
		panic(err) // it is a file of the program
	}
	return alerts
}

package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// scrapeInterval is how often pods are scraped. It is the interval that Grafana assumes
// for a data source without a configured one.
const scrapeInterval = "15s"

// Monitoring is the API group of the service that evaluates alerts in a cluster, or "" for none.
type Monitoring string

// PrometheusOperator is on clusters that others have made.
const PrometheusOperator Monitoring = "monitoring.coreos.com"

// ManagedPrometheus is Managed Service for Prometheus, with PodMonitorings and Rules. Their webhook runs on the nodes, so that a new
// cluster, whose nodes run no pod yet, refuses them (GoogleCloudPlatform/ai-on-gke, issue 402): a
// PodMonitoring comes after a Deployment that is available. No other webhook that GKE installs and
// that an object of the program passes runs there.
const ManagedPrometheus Monitoring = "monitoring.googleapis.com"

// PodMonitoring makes Managed Service for Prometheus scrape pods in its namespace. It
// has the fields of Google's kind that the program writes.
type PodMonitoring = Custom[PodMonitoringSpec]

// PodMonitoringSpec says which pods are scraped, on which ports, and which labels their series get.
type PodMonitoringSpec struct {
	Selector     metav1.LabelSelector `json:"selector"`
	Endpoints    []map[string]any     `json:"endpoints"`
	TargetLabels map[string]any       `json:"targetLabels,omitempty"`
}

// NewPodMonitoring returns a PodMonitoring of pods that serve metrics on a port. Each series gets some
// labels of its pod.
func NewPodMonitoring(meta metav1.ObjectMeta, pods metav1.LabelSelector, port int32, labels ...string) *PodMonitoring {
	monitoring := &PodMonitoring{
		TypeMeta:   metav1.TypeMeta{APIVersion: string(ManagedPrometheus) + "/v1", Kind: "PodMonitoring"},
		ObjectMeta: meta,
		Spec:       PodMonitoringSpec{Selector: pods, Endpoints: []map[string]any{{"port": port, "interval": scrapeInterval}}},
	}
	var fromPod []map[string]any
	for _, label := range labels {
		fromPod = append(fromPod, map[string]any{"from": label})
	}
	if fromPod != nil {
		monitoring.Spec.TargetLabels = map[string]any{"fromPod": fromPod}
	}
	return monitoring
}

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

package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// scrapeInterval is how often pods are scraped. It is the interval that Grafana assumes
// for a data source without a configured one.
const scrapeInterval = "15s"

// MonitoringGroup is the API group of PodMonitorings. Their webhook runs on the nodes, so that a new
// cluster, whose nodes run no pod yet, refuses them (GoogleCloudPlatform/ai-on-gke, issue 402): a
// PodMonitoring comes after a Deployment that is available. No other webhook that GKE installs and
// that an object of the program passes runs there.
const MonitoringGroup = "monitoring.googleapis.com"

// PodMonitoring makes Managed Service for Prometheus scrape pods in its namespace. It
// has the fields of Google's kind that the program writes.
type PodMonitoring = Custom[PodMonitoringSpec]

// PodMonitoringSpec says which pods are scraped, on which ports, and which labels their
// series get.
type PodMonitoringSpec struct {
	Selector     metav1.LabelSelector `json:"selector"`
	Endpoints    []ScrapeEndpoint     `json:"endpoints"`
	TargetLabels *TargetLabels        `json:"targetLabels,omitempty"`
}

// ScrapeEndpoint is a port of the pods that is scraped.
type ScrapeEndpoint struct {
	Port     intstr.IntOrString `json:"port"`
	Interval string             `json:"interval"`
}

// TargetLabels are the labels that every series of a pod gets.
type TargetLabels struct {
	FromPod []LabelMapping `json:"fromPod"`
}

// LabelMapping copies a label of the pod to its series.
type LabelMapping struct {
	From string `json:"from"`
}

// NewPodMonitoring returns a PodMonitoring of monitoring.googleapis.com/v1.
func NewPodMonitoring(meta metav1.ObjectMeta, spec PodMonitoringSpec) *PodMonitoring {
	return &PodMonitoring{
		TypeMeta:   metav1.TypeMeta{APIVersion: MonitoringGroup + "/v1", Kind: "PodMonitoring"},
		ObjectMeta: meta,
		Spec:       spec,
	}
}

// Scrape returns the endpoints of pods that serve metrics on one port.
func Scrape(port int32) []ScrapeEndpoint {
	return []ScrapeEndpoint{{Port: intstr.FromInt32(port), Interval: scrapeInterval}}
}

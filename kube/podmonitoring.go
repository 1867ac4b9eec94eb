package kube

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// scrapeInterval is how often pods are scraped. It is what Grafana takes for the
// interval of a data source of which it is not told.
const scrapeInterval = "15s"

// PodMonitoring has Managed Service for Prometheus scrape pods of its namespace. It
// has those fields of Google's kind (monitoring.googleapis.com/v1) that the program
// writes.
type PodMonitoring struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              PodMonitoringSpec `json:"spec"`
}

// PodMonitoringSpec says which pods are scraped, where, and what their series are
// told by.
type PodMonitoringSpec struct {
	Selector     metav1.LabelSelector `json:"selector"`
	Endpoints    []ScrapeEndpoint     `json:"endpoints"`
	TargetLabels *TargetLabels        `json:"targetLabels,omitempty"`
}

// ScrapeEndpoint is a port of the pods.
type ScrapeEndpoint struct {
	Port     intstr.IntOrString `json:"port"`
	Interval string             `json:"interval"`
}

// TargetLabels are labels that every series of a pod gets.
type TargetLabels struct {
	FromPod []LabelMapping `json:"fromPod"`
}

// LabelMapping gives to the series of a pod one of the pod's own labels.
type LabelMapping struct {
	From string `json:"from"`
}

func init() {
	kinds.AddKnownTypes(schema.GroupVersion{Group: "monitoring.googleapis.com", Version: "v1"}, &PodMonitoring{})
}

// Scrape are the endpoints of pods that show metrics on one port.
func Scrape(port int32) []ScrapeEndpoint {
	return []ScrapeEndpoint{{Port: intstr.FromInt32(port), Interval: scrapeInterval}}
}

// DeepCopyObject copies the object, as a runtime.Object can be.
func (p *PodMonitoring) DeepCopyObject() runtime.Object {
	copied := *p
	p.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	p.Spec.Selector.DeepCopyInto(&copied.Spec.Selector)
	copied.Spec.Endpoints = slices.Clone(p.Spec.Endpoints)
	if p.Spec.TargetLabels != nil {
		copied.Spec.TargetLabels = &TargetLabels{FromPod: slices.Clone(p.Spec.TargetLabels.FromPod)}
	}
	return &copied
}

package programtest

import (
	corev1 "k8s.io/api/core/v1"
)

// NATSCluster has the fields of a NatsCluster that the program writes, under the
// names that the operator reads them by.
type NATSCluster struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace   string            `json:"namespace"`
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Size                    int32  `json:"size"`
		Version                 string `json:"version"`
		ServerImage             string `json:"serverImage"`
		LameDuckDurationSeconds int    `json:"lameDuckDurationSeconds"`
		NatsConfig              struct {
			MaxPayload     int    `json:"maxPayload"`
			MaxPending     int    `json:"maxPending"`
			MaxConnections int    `json:"maxConnections"`
			WriteDeadline  string `json:"write_deadline"`
		} `json:"natsConfig"`
		Pod struct {
			NodeSelector       map[string]string           `json:"nodeSelector"`
			Tolerations        []corev1.Toleration         `json:"tolerations"`
			Resources          corev1.ResourceRequirements `json:"resources"`
			AntiAffinity       bool                        `json:"antiAffinity"`
			EnableConfigReload bool                        `json:"enableConfigReload"`
			ReloaderImage      string                      `json:"reloaderImage"`
			ReloaderImageTag   string                      `json:"reloaderImageTag"`
			ReloaderResources  corev1.ResourceRequirements `json:"reloaderResources"`
			EnableMetrics      bool                        `json:"enableMetrics"`
			MetricsImage       string                      `json:"metricsImage"`
			MetricsImageTag    string                      `json:"metricsImageTag"`
		} `json:"pod"`
		Template struct {
			Spec corev1.PodSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

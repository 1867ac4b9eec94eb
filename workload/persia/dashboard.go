package persia

import (
	_ "embed"

	corev1 "k8s.io/api/core/v1"

	"persia/kube"
)

// dashboard shows the metrics of all jobs in Grafana.
//
//go:embed dashboard.json
var dashboard string

const dashboardName = "persia-dashboard"

// dashboardConfigMap returns the dashboard with the label by which the sidecar of Grafana's Helm
// chart finds dashboards.
func dashboardConfigMap() *corev1.ConfigMap {
	labels := kube.Labels("dashboard", dashboardName)
	labels["grafana_dashboard"] = "1"
	return &corev1.ConfigMap{
		ObjectMeta: kube.Meta(NamespaceName, dashboardName, labels),
		Data:       map[string]string{"persia.json": dashboard},
	}
}

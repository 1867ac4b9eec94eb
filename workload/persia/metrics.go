package persia

import (
	_ "embed"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

const (
	metricsGatewayPort = 9091
	// The image's own user, nobody.
	metricsGatewayUser = 65534
)

// scrapedLabel is upstream's, on the pods that show metrics.
const scrapedLabel = "prom"

// gatewayLabels returns the labels of a gateway's objects and pod.
func gatewayLabels(names names) map[string]string {
	labels := kube.Labels(config.MetricsGateway, names.gateway)
	labels[config.JobLabel] = names.job
	return labels
}

// gatewayPodLabels returns the labels by which a gateway's pod is found, whatever else it runs.
func gatewayPodLabels(names names) map[string]string {
	return map[string]string{"service": names.gatewayService, scrapedLabel: names.job}
}

func metricsService(names names) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: kube.Meta(NamespaceName, names.gatewayService, gatewayLabels(names)),
		Spec: corev1.ServiceSpec{
			// The selector of upstream's Service.
			Selector: map[string]string{"service": names.gatewayService},
			Ports:    []corev1.ServicePort{kube.ServicePort("http", metricsGatewayPort)},
		},
	}
}

// gatewayContainer returns the container of a gateway.
func gatewayContainer(image string) corev1.Container {
	return corev1.Container{
		Name:           "pushgateway",
		Image:          image,
		Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: metricsGatewayPort}},
		ReadinessProbe: kube.HTTPProbe("http", "/-/ready"),
		Resources: corev1.ResourceRequirements{
			Requests: kube.Requests(capacity.MetricsGateway),
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		},
	}
}

func metricsDeployment(names names, image string, placement kube.Placement) *appsv1.Deployment {
	labels := gatewayLabels(names)
	podLabels := maps.Clone(labels)
	maps.Copy(podLabels, gatewayPodLabels(names))
	pod := corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		Containers:                   []corev1.Container{gatewayContainer(image)},
	}
	kube.Restrict(&pod, metricsGatewayUser)
	placement.Apply(&pod)
	return &appsv1.Deployment{
		ObjectMeta: kube.Meta(NamespaceName, names.gateway, labels),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
				"app.kubernetes.io/name":     config.MetricsGateway,
				"app.kubernetes.io/instance": labels["app.kubernetes.io/instance"],
			}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels}, Spec: pod},
		},
	}
}

// podMonitoring makes Managed Service for Prometheus scrape the metrics gateways of all jobs. The service sets the
// labels job and instance itself, and renames pushed labels of these names to exported_job and exported_instance. So
// each series gets its job from a label of the pod.
func podMonitoring() *kube.PodMonitoring {
	const name = "metrics-gateways"
	labels := kube.Labels(config.MetricsGateway, name)
	// By upstream's label, and by number since upstream gives the port no name: the gateways that PERSIA's operator
	// makes are scraped, too.
	return kube.NewPodMonitoring(kube.Meta(NamespaceName, name, labels), labelled(scrapedLabel), metricsGatewayPort, config.JobLabel)
}

// dashboard shows the metrics of all jobs in Grafana.
//
//go:embed dashboard.json
var dashboard string

const dashboardName = "persia-dashboard"

// dashboardConfigMap returns the dashboard with the label by which the sidecar of Grafana's Helm chart finds
// dashboards.
func dashboardConfigMap() *corev1.ConfigMap {
	labels := kube.Labels("dashboard", dashboardName)
	labels["grafana_dashboard"] = "1"
	return &corev1.ConfigMap{
		ObjectMeta: kube.Meta(NamespaceName, dashboardName, labels),
		Data:       map[string]string{"persia.json": dashboard},
	}
}

// alerts are alerting rules of all jobs.
//
//go:embed alerts.yaml
var alerts string

package nats

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/config"
	"persia/kube"
)

const (
	clientPort     = config.NATSPort
	routePort      = 6222
	monitoringPort = 8222
	metricsPort    = 7777
)

const (
	// serverContainer is the operator's name for the server's container.
	serverContainer = "nats"
	// Any user but root, because the server writes only its process id, into a volume.
	serverUser = 1000

	// lameDuckSeconds is how long a server takes to send its clients to other servers before it stops. It is the minimum
	// that nats-server accepts: with its default of two minutes, a new version of sixty servers would take two hours.
	lameDuckSeconds = 30
	// The defaults of nats-server.
	maxConnections, writeDeadline = 65536, "10s"
)

// fields are fields of a NatsCluster. The operator silently ignores all that it does not know
// (pkg/apis/nats/v1alpha2 of v0.8.3), such as resources directly in a spec.
type fields = map[string]any

func clusterSpec(args ClusterArgs) fields {
	nats := args.NATS
	pod := fields{
		"nodeSelector": args.Placement.NodeSelector,
		"tolerations":  args.Placement.Tolerations,
		"resources":    nats.Resources,
	}
	if nats.AntiAffinity {
		pod["antiAffinity"] = true
	}
	if nats.Metrics {
		pod["enableMetrics"] = true
		pod["metricsImage"] = args.Images.Reference(config.ImageNATSExporter.Repository)
		pod["metricsImageTag"] = config.ImageNATSExporter.Tag
	}
	return fields{
		"size":                    nats.Size,
		"version":                 nats.Version,
		"serverImage":             args.Images.Reference(nats.Image),
		"lameDuckDurationSeconds": lameDuckSeconds,
		"natsConfig": fields{
			"maxPayload":     nats.MaxPayload,
			"maxPending":     nats.MaxPending(),
			"maxConnections": maxConnections,
			"write_deadline": writeDeadline,
		},
		"pod": pod,
		// The operator adds its own fields to this pod.
		"template": fields{"spec": podTemplate(nats)},
	}
}

func podTemplate(nats config.NATS) corev1.PodSpec {
	pod := corev1.PodSpec{
		PriorityClassName: config.PriorityNATS.Name,
		// A server does not use the Kubernetes API.
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		Containers: []corev1.Container{{
			Name: serverContainer,
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/",
				Port: intstr.FromInt32(monitoringPort),
			}}},
		}},
	}
	kube.Restrict(&pod, serverUser)
	pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		evenly(nats, corev1.LabelTopologyZone),
		evenly(nats, corev1.LabelHostname),
	}
	return pod
}

// evenly prefers the nodes, or zones, with fewer servers. It never keeps a pod waiting.
func evenly(nats config.NATS, over string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew:           1,
		TopologyKey:       over,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: serverLabels(nats)},
	}
}

// serverLabels returns the labels that the operator gives the servers.
func serverLabels(nats config.NATS) map[string]string {
	return map[string]string{"app": "nats", "nats_cluster": nats.Name}
}

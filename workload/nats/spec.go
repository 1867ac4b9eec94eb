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

	// lameDuckSeconds is how long a server takes to send its clients to other servers
	// before it stops. It is the minimum that nats-server accepts: with its default of
	// two minutes, a new version of sixty servers would take two hours.
	lameDuckSeconds = 30
	// The defaults of nats-server.
	maxConnections, writeDeadline = 65536, "10s"
)

// spec has the fields of a NatsCluster that the operator reads (pkg/apis/nats/v1alpha2 of v0.8.3)
// and the program writes. The operator silently ignores all others, such as resources directly in a
// spec.
type spec struct {
	Size            int        `json:"size"`
	Version         string     `json:"version"`
	ServerImage     string     `json:"serverImage"`
	LameDuckSeconds int        `json:"lameDuckDurationSeconds"`
	NatsConfig      natsConfig `json:"natsConfig"`
	Pod             podPolicy  `json:"pod"`
	Template        template   `json:"template"`
}

type natsConfig struct {
	MaxPayload     int    `json:"maxPayload"`
	MaxPending     int    `json:"maxPending"`
	MaxConnections int    `json:"maxConnections"`
	WriteDeadline  string `json:"write_deadline"`
}

type podPolicy struct {
	AntiAffinity    bool                        `json:"antiAffinity,omitempty"`
	NodeSelector    map[string]string           `json:"nodeSelector,omitempty"`
	Tolerations     []corev1.Toleration         `json:"tolerations,omitempty"`
	Resources       corev1.ResourceRequirements `json:"resources"`
	EnableMetrics   bool                        `json:"enableMetrics,omitempty"`
	MetricsImage    string                      `json:"metricsImage,omitempty"`
	MetricsImageTag string                      `json:"metricsImageTag,omitempty"`
}

// template is the pod template that the operator starts from before it adds its own
// fields.
type template struct {
	Spec corev1.PodSpec `json:"spec"`
}

func clusterSpec(args ClusterArgs) spec {
	nats := args.NATS
	s := spec{
		Size:            nats.Size,
		Version:         nats.Version,
		ServerImage:     args.Images.Reference(nats.Image),
		LameDuckSeconds: lameDuckSeconds,
		NatsConfig: natsConfig{
			MaxPayload:     nats.MaxPayload,
			MaxPending:     nats.MaxPending(),
			MaxConnections: maxConnections,
			WriteDeadline:  writeDeadline,
		},
		Pod: podPolicy{
			AntiAffinity: nats.AntiAffinity,
			NodeSelector: args.Placement.NodeSelector,
			Tolerations:  args.Placement.Tolerations,
			Resources:    nats.Resources,
		},
		Template: template{Spec: podTemplate(nats)},
	}
	if nats.Metrics {
		s.Pod.EnableMetrics = true
		s.Pod.MetricsImage, s.Pod.MetricsImageTag = args.Images.Reference(config.ImageNATSExporter.Repository), config.ImageNATSExporter.Tag
	}
	return s
}

func podTemplate(nats config.NATS) corev1.PodSpec {
	no := false
	pod := corev1.PodSpec{
		PriorityClassName: config.PriorityNATS.Name,
		// A server does not use the Kubernetes API.
		AutomountServiceAccountToken: &no,
		EnableServiceLinks:           &no,
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

package jobset

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/capacity"
	"persia/config/cachespec"
	"persia/config/images"
	"persia/kube"
)

const (
	// Namespace holds the controller. It is upstream's: the certificate names it.
	Namespace = "jobset-system"

	controllerName = "jobset-controller"
	// The image's own user.
	controllerUser = 65532
	// webhookPort is one of the two ports on which the control plane of a private GKE
	// cluster reaches pods.
	webhookPort = 10250
	healthPort  = 8081

	settingsName = "jobset-settings"
	settingsPath = "/etc/jobset"
	settingsFile = "settings.yaml"
	// The names of the certificate and its Service are JobSet's defaults, and the folder is
	// a constant of its program.
	certificateName = "jobset-webhook-server-cert"
	serviceName     = "jobset-webhook-service"
	certificatePath = "/tmp/k8s-webhook-server/serving-certs"
)

// settings are the controller's, where they are not the defaults. There is one replica,
// which needs no election, and no collector of its metrics.
const settings = `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
webhook: {port: 10250}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true}
`

// ControllerArgs describes the controller.
type ControllerArgs struct {
	// Images says where nodes pull images from.
	Images cachespec.Settings
	// Placement is where the controller runs.
	Placement kube.Placement
	// JobNamespace is where JobSets may be. It is among Needs.
	JobNamespace string
	// Needs come before everything of the controller.
	Needs []pulumi.CustomResource
}

// Controller is JobSet's controller and its kind.
type Controller struct {
	pulumi.ResourceState

	// Objects are ready when JobSets can be created.
	Objects []pulumi.CustomResource
}

// NewController registers the controller with its namespace, identity, webhooks and kind.
func NewController(ctx *pulumi.Context, name string, args ControllerArgs, opts ...pulumi.ResourceOption) (*Controller, error) {
	component := &Controller{}
	if err := ctx.RegisterComponentResource("persia:jobset:Controller", name, component, opts...); err != nil {
		return nil, err
	}
	crd, err := definition()
	if err != nil {
		return nil, err
	}
	child := kube.Child(component, args.Needs)
	registered, err := kube.RegisterOperator(ctx, name, controller(args, kube.Kind{Resource: name, Definition: crd}), child)
	if err != nil {
		return nil, err
	}
	// Pulumi waits until the Service has an endpoint: the webhooks serve before the first
	// JobSet comes.
	service, err := kube.Register(ctx, name, webhookService(), child, kube.After([]pulumi.CustomResource{registered}))
	if err != nil {
		return nil, err
	}
	component.Objects = []pulumi.CustomResource{service}
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{})
}

func controller(args ControllerArgs, kind kube.Kind) kube.Operator {
	return kube.Operator{
		Name:          controllerName,
		Namespace:     Namespace,
		PodSecurity:   kube.RestrictedPodSecurity(),
		Kinds:         []kube.Kind{kind},
		RoleNamespace: args.JobNamespace,
		Role:          jobRules(),
		ClusterRole:   clusterRules(),
		Before:        before(args.JobNamespace),
		Container: corev1.Container{
			Image:   args.Images.Reference(images.JobSet.Reference()),
			Command: []string{"/manager"},
			Args:    []string{"--config=" + settingsPath + "/" + settingsFile, "--zap-log-level=2"},
			Ports: []corev1.ContainerPort{
				{Name: "webhooks", ContainerPort: webhookPort},
				{Name: "health", ContainerPort: healthPort},
			},
			// It is ready when it has a certificate and listens.
			ReadinessProbe: probe("/readyz"),
			LivenessProbe:  probe("/healthz"),
			VolumeMounts: []corev1.VolumeMount{
				{Name: "settings", MountPath: settingsPath, ReadOnly: true},
				{Name: "certificate", MountPath: certificatePath, ReadOnly: true},
			},
			Resources: corev1.ResourceRequirements{
				Requests: kube.Requests(capacity.JobSetController),
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")},
			},
		},
		Volumes: []corev1.Volume{
			{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: settingsName},
			}}},
			{Name: "certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: certificateName}}},
		},
		User:      controllerUser,
		Placement: args.Placement,
	}
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}},
		PeriodSeconds: 10,
	}
}

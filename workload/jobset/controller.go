package jobset

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

const (
	// Namespace holds the controller. It is upstream's: the certificate names it.
	Namespace = "jobset-system"

	controllerName = "jobset-controller"
	// The image's own user.
	controllerUser = 65532

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
var settings = fmt.Sprintf(`apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
webhook: {port: %d}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true}
`, kube.WebhookPort)

// ControllerArgs describes the controller.
type ControllerArgs struct {
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where the controller runs.
	Placement kube.Placement
	// JobNamespace is where JobSets may be. It is among Needs.
	JobNamespace string
	// Needs come before everything of the controller.
	Needs []pulumi.CustomResource
}

// NewController registers the controller with its namespace, identity, webhooks and kind.
func NewController(ctx *pulumi.Context, name string, args ControllerArgs, opts ...pulumi.ResourceOption) (*kube.Operator, error) {
	crd, err := definition()
	if err != nil {
		return nil, err
	}
	described := controller(args, kube.Kind{Resource: name, Definition: crd})
	return kube.NewOperator(ctx, "persia:jobset:Controller", name, described, args.Needs, opts...)
}

func controller(args ControllerArgs, kind kube.Kind) kube.OperatorArgs {
	return kube.OperatorArgs{
		Name:          controllerName,
		Namespace:     Namespace,
		PodSecurity:   kube.RestrictedPodSecurity(),
		Kinds:         []kube.Kind{kind},
		RoleNamespace: args.JobNamespace,
		Role:          jobRules(),
		ClusterRole:   clusterRules(),
		Before:        before(),
		Webhooks:      webhooks(args.JobNamespace),
		Container: corev1.Container{
			Image:   args.Images.Reference(config.ImageJobSet.Reference()),
			Command: []string{"/manager"},
			Args:    []string{"--config=" + settingsPath + "/" + settingsFile, "--zap-log-level=2"},
			// It is ready when it has a certificate and listens.
			ReadinessProbe: kube.HTTPProbe("health", "/readyz", 10, 0),
			LivenessProbe:  kube.HTTPProbe("health", "/healthz", 10, 0),
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
			kube.ConfigMapVolume("settings", settingsName),
			kube.SecretVolume("certificate", certificateName),
		},
		User:      controllerUser,
		Placement: args.Placement,
	}
}

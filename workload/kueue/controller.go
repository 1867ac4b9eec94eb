package kueue

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
	"persia/config"
	"persia/kube"
	"persia/workload/kueue/definitions"
)

const (
	// Namespace holds Kueue, and nothing else.
	Namespace = "kueue-system"
	// ConfigPath is Kueue's configuration in its container.
	ConfigPath = "/etc/kueue/config.yaml"

	controllerName = "kueue"
	// Any user but root: the program writes no files.
	controllerUser = 1000
)

// ControllerArgs describes Kueue.
type ControllerArgs struct {
	// JobNamespace has the jobs that wait in queues. In all others, Kueue does nothing.
	JobNamespace string
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where Kueue runs.
	Placement kube.Placement
	// StartMinutes is how long an admitted job may take until all of its pods are ready.
	StartMinutes int
	// Needs come before everything of Kueue. The definition of JobSets and JobNamespace are among
	// them.
	Needs []pulumi.CustomResource
}

// NewController registers Kueue. Its webhooks come before the Deployment, which is ready when
// Kueue has written its certificate into them. While there are queues and Workloads, Kueue must run:
// they have finalizers that only Kueue removes.
func NewController(ctx *pulumi.Context, name string, args ControllerArgs, opts ...pulumi.ResourceOption) (*kube.Operator, error) {
	kinds, err := kinds(name)
	if err != nil {
		return nil, err
	}
	return kube.NewOperator(ctx, "persia:kueue:Controller", name, controller(name, args, kinds), args.Needs, opts...)
}

func controller(name string, args ControllerArgs, kinds []kube.Kind) kube.OperatorArgs {
	settings := configuration(args.JobNamespace, args.StartMinutes)
	role, clusterRole := rights()
	return kube.OperatorArgs{
		Name:          controllerName,
		Namespace:     Namespace,
		PodSecurity:   kube.RestrictedPodSecurity(),
		Kinds:         kinds,
		Before:        before(name, settings),
		Webhooks:      webhooks(name, args.JobNamespace),
		RoleNamespace: Namespace,
		Role:          role,
		ClusterRole:   clusterRole,
		Container: corev1.Container{
			Image: args.Images.Reference(config.ImageKueue.Reference()),
			Args:  []string{"--config=" + ConfigPath, "--zap-log-level=2"},
			// Kueue reads its configuration only when it starts.
			Env:            []corev1.EnvVar{{Name: "CONFIGURATION", Value: kube.Hash(settings)}},
			ReadinessProbe: kube.HTTPProbe("health", "/readyz", 5, 3),
			LivenessProbe:  kube.HTTPProbe("health", "/healthz", 30, 3),
			VolumeMounts: []corev1.VolumeMount{
				{Name: "config", MountPath: "/etc/kueue", ReadOnly: true},
				{Name: "certificate", MountPath: certificateFolder, ReadOnly: true},
			},
			Resources: corev1.ResourceRequirements{
				Requests: kube.Requests(capacity.Kueue),
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			},
		},
		Volumes: []corev1.Volume{
			kube.ConfigMapVolume("config", controllerName),
			kube.SecretVolume("certificate", certificateName),
		},
		User:      controllerUser,
		Placement: args.Placement,
	}
}

// kinds returns the definitions of Kueue. Each names the webhook that would convert objects of
// another version: there is none, but Kueue's certificates are not ready before it has
// written one into every definition.
func kinds(name string) ([]kube.Kind, error) {
	all, err := definitions.All()
	if err != nil {
		return nil, err
	}
	var kinds []kube.Kind
	for _, definition := range all {
		path := "/convert"
		definition.Labels = kube.Labels(controllerName, controllerName)
		definition.Spec.Conversion = &extensionsv1.CustomResourceConversion{
			Strategy: extensionsv1.WebhookConverter,
			Webhook: &extensionsv1.WebhookConversion{
				ClientConfig: &extensionsv1.WebhookClientConfig{
					Service: &extensionsv1.ServiceReference{Namespace: Namespace, Name: serviceName, Path: &path},
				},
				ConversionReviewVersions: []string{"v1"},
			},
		}
		kinds = append(kinds, kube.Kind{Resource: fmt.Sprintf("%s-%s", name, definition.Spec.Names.Plural), Definition: definition})
	}
	return kinds, nil
}

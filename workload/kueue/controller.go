package kueue

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/capacity"
	"persia/config/cachespec"
	"persia/config/images"
	"persia/kube"
	"persia/workload/kueue/definitions"
)

const (
	// Namespace holds Kueue, and nothing else.
	Namespace = "kueue-system"
	// ConfigPath is Kueue's configuration in its container.
	ConfigPath = "/etc/kueue/config.yaml"

	controllerName = "kueue"
	// webhookPort is the kubelet's. GKE opens only this port and 443 between the control plane
	// and the nodes of a private cluster, and a container that is not root cannot use 443.
	webhookPort = 10250
	healthPort  = 8081
	// Any user but root: the program writes no files.
	controllerUser = 1000
)

// ControllerArgs describes Kueue.
type ControllerArgs struct {
	// JobNamespace has the jobs that wait in queues. In all others, Kueue does nothing.
	JobNamespace string
	// Images says where nodes pull images from.
	Images cachespec.Settings
	// Placement is where Kueue runs.
	Placement kube.Placement
	// StartMinutes is how long an admitted job may take until all of its pods are ready.
	StartMinutes int
	// Needs come before everything of Kueue. The definition of JobSets and JobNamespace are among
	// them.
	Needs []pulumi.CustomResource
}

// Controller is Kueue with the kinds that it serves.
type Controller struct {
	pulumi.ResourceState

	// Objects are ready when queues can be created. While there are queues and Workloads, Kueue
	// must run: they have finalizers that only Kueue removes.
	Objects []pulumi.CustomResource
}

// NewController registers Kueue. Its webhooks come before the Deployment, which is ready when
// Kueue has written its certificate into them.
func NewController(ctx *pulumi.Context, name string, args ControllerArgs, opts ...pulumi.ResourceOption) (*Controller, error) {
	component := &Controller{}
	if err := ctx.RegisterComponentResource("persia:kueue:Controller", name, component, opts...); err != nil {
		return nil, err
	}
	described, err := controller(name, args)
	if err != nil {
		return nil, err
	}
	child := kube.Child(component, args.Needs)
	registered, err := kube.RegisterOperator(ctx, name, described, child)
	if err != nil {
		return nil, err
	}
	// Pulumi waits until the Service has an endpoint: the webhooks serve before the first queue
	// comes.
	service, err := kube.Register(ctx, name, webhookService(), child, kube.After([]pulumi.CustomResource{registered}))
	if err != nil {
		return nil, err
	}
	component.Objects = []pulumi.CustomResource{service}
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{})
}

func controller(name string, args ControllerArgs) (kube.Operator, error) {
	kinds, err := kinds(name)
	if err != nil {
		return kube.Operator{}, err
	}
	config := configuration(args.JobNamespace, args.StartMinutes)
	role, clusterRole := rights()
	return kube.Operator{
		Name:          controllerName,
		Namespace:     Namespace,
		PodSecurity:   kube.RestrictedPodSecurity(),
		Kinds:         kinds,
		Before:        before(name, args.JobNamespace, config),
		RoleNamespace: Namespace,
		Role:          role,
		ClusterRole:   clusterRole,
		Container: corev1.Container{
			Image: args.Images.Reference(images.Kueue.Reference()),
			Args:  []string{"--config=" + ConfigPath, "--zap-log-level=2"},
			// Kueue reads its configuration only when it starts.
			Env:            []corev1.EnvVar{{Name: "CONFIGURATION", Value: kube.Hash(config)}},
			Ports:          []corev1.ContainerPort{{Name: "webhooks", ContainerPort: webhookPort}, {Name: "health", ContainerPort: healthPort}},
			ReadinessProbe: probe("/readyz", 5),
			LivenessProbe:  probe("/healthz", 30),
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
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: controllerName},
			}}},
			{Name: "certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: certificateName}}},
		},
		User:      controllerUser,
		Placement: args.Placement,
	}, nil
}

func probe(path string, seconds int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}},
		PeriodSeconds:  seconds,
		TimeoutSeconds: 3,
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

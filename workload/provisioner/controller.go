package provisioner

import (
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/kube"
)

const (
	// Namespace holds the provisioner, and nothing else.
	Namespace = "persia-provisioner"

	controllerName = "provisioner"
	scriptFile     = "provisioner.py"
	scriptFolder   = "/etc/provisioner"
	accountFolder  = "/var/run/secrets/kubernetes.io/serviceaccount/"
	// Any user but root: the script writes no files.
	controllerUser = 1000
)

//go:embed provisioner.py
var script string

// PodAnnotations returns the annotations of the nn-workers of a job, which wait for the nodes of the
// request that has the job's name.
func PodAnnotations(job string) map[string]string {
	return map[string]string{gcp.AnnotationRequest: job, gcp.AnnotationRequestClass: gcp.ClassQueued}
}

// ControllerArgs describes the provisioner.
type ControllerArgs struct {
	// JobNamespace has the jobs. In all other namespaces, the provisioner has no rights.
	JobNamespace string
	// Images says where nodes pull images from.
	Images config.Images
	// Placement is where the provisioner runs.
	Placement kube.Placement
	// Needs come before everything of the provisioner. JobNamespace is among them.
	Needs []pulumi.CustomResource
}

// NewController registers the provisioner. It runs before the jobs, and as long as they do.
func NewController(ctx *pulumi.Context, name string, args ControllerArgs, opts ...pulumi.ResourceOption) (*kube.Operator, error) {
	return kube.NewOperator(ctx, "persia:provisioner:Controller", name, controller(name, args), args.Needs, opts...)
}

func controller(name string, args ControllerArgs) kube.OperatorArgs {
	return kube.OperatorArgs{
		Name:          controllerName,
		Namespace:     Namespace,
		PodSecurity:   kube.RestrictedPodSecurity(),
		RoleNamespace: args.JobNamespace,
		Role: []rbacv1.PolicyRule{
			kube.Rule("jobset.x-k8s.io", []string{"list"}, "jobsets"),
			kube.Rule("", []string{"list"}, "pods"),
			kube.Rule("", []string{"create", "delete"}, "podtemplates"),
			kube.Rule("autoscaling.x-k8s.io", []string{"create", "delete", "list"}, "provisioningrequests"),
		},
		Before: []kube.Named{{Resource: name, Object: &corev1.ConfigMap{
			ObjectMeta: kube.Meta(Namespace, controllerName, kube.Labels(controllerName, controllerName)),
			Data:       map[string]string{scriptFile: script},
		}}},
		Container: corev1.Container{
			Image:   args.Images.Reference(config.ImagePython.Reference()),
			Command: []string{"python3", scriptFolder + "/" + scriptFile},
			Args:    []string{"--namespace=" + args.JobNamespace, "--account=" + accountFolder},
			// A changed script restarts the pod.
			Env:          []corev1.EnvVar{{Name: "SCRIPT", Value: kube.Hash(script)}},
			VolumeMounts: []corev1.VolumeMount{{Name: "script", MountPath: scriptFolder, ReadOnly: true}},
			Resources: corev1.ResourceRequirements{
				Requests: kube.Requests(capacity.Provisioner),
				// The pods of the largest job, as JSON.
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
		},
		Volumes:   []corev1.Volume{kube.ConfigMapVolume("script", controllerName)},
		User:      controllerUser,
		Placement: args.Placement,
	}
}

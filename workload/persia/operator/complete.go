package operator

import (
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/capacity"
	"persia/kube"
	"persia/workload/persia"
	"persia/workload/persia/operator/persiav1"
)

// completeScript looks at the pods of a job until it is complete or has failed.
//
//go:embed complete.py
var completeScript string

// registerCompletion registers the Kubernetes Job that is complete when the training job
// is, with the right to list pods. A job that is stopped has none, nor has one whose pods
// are always started again: it never ends.
func registerCompletion(ctx *pulumi.Context, name string, args JobArgs, spec persiav1.PersiaJobSpec, child, after pulumi.ResourceOption) error {
	if args.Job.Suspend || spec.RestartPolicy == corev1.RestartPolicyAlways {
		return nil
	}
	text, err := textOf(spec)
	if err != nil {
		return err
	}
	var needs []pulumi.CustomResource
	for _, object := range completionRights(args) {
		registered, err := kube.Register(ctx, name+"-completion", object, child)
		if err != nil {
			return err
		}
		needs = append(needs, registered)
	}
	return persia.RegisterCompletion(ctx, name, persia.Completion{
		Namespace: args.Namespace, Job: args.Job.Name, Changes: text, Pod: completionPod(args),
	}, child, after, kube.After(needs))
}

func completionAccount(args JobArgs) string { return kube.LabelName(args.Job.Name, "completion") }

// completionRights returns the objects that the pod of a completion needs: an identity that may
// list the pods of the namespace, and a route to the API server. The pod does not count as one of
// the job's.
func completionRights(args JobArgs) []runtime.Object {
	labels := persia.CompletionLabels(args.Job.Name)
	meta := kube.Meta(args.Namespace, completionAccount(args), labels)
	no := false
	return []runtime.Object{
		&corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: &no},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{kube.Rule("", []string{"list"}, "pods")}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
		},
		&networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: labels},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      kube.ToAPIServer(),
		}},
	}
}

func completionPod(args JobArgs) corev1.PodSpec {
	yes, no := true, false
	pod := corev1.PodSpec{
		ServiceAccountName:           completionAccount(args),
		AutomountServiceAccountToken: &yes,
		EnableServiceLinks:           &no,
		RestartPolicy:                corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "completion",
			// It has Python, and the system pool has it already.
			Image:           args.Images.Reference(args.Image),
			ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         []string{"python3", "-c", completeScript},
			Env: []corev1.EnvVar{
				{Name: "PERSIA_JOB", Value: args.Job.Name},
				{Name: "PERSIA_NAMESPACE", Value: args.Namespace},
				{Name: "PERSIA_REPLICAS", Value: persia.AllReplicas(args.Job)},
			},
			Resources: corev1.ResourceRequirements{
				Requests: kube.Requests(capacity.OperatorCompletion),
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
			},
		}},
	}
	kube.Restrict(&pod, operatorUser)
	args.SystemPlacement.Apply(&pod)
	return pod
}

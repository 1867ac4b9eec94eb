package persia

import (
	_ "embed"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/capacity"
	"persia/kube"
)

// operatedCompleteScript looks at the pods of a job until it is complete or has failed.
//
//go:embed complete.py
var operatedCompleteScript string

// addOperatedCompletion registers the Kubernetes Job that is complete when the training job is, with the
// right to list pods. A job that is stopped has none, nor has one whose pods are always started again: it
// never ends.
func addOperatedCompletion(objects *kube.Objects, name string, args JobArgs, changes string, needs []pulumi.CustomResource, job pulumi.CustomResource) {
	if args.Job.Suspend || args.Job.RestartPolicy == corev1.RestartPolicyAlways {
		return
	}
	name += "-completion"
	after := append(kube.Needs(job), needs...)
	for _, object := range completionRights(args) {
		after = append(after, objects.Add(name, object, needs))
	}
	objects.Add(name, completionJob(args, changes, map[string]string{}, operatedCompletionPod(args)), after)
}

// Any user but root: the script writes no files.
const operatedCompletionUser = 1000

func completionAccount(args JobArgs) string { return kube.LabelName(args.Job.Name, "completion") }

// completionRights returns the objects that the pod of a completion needs: an identity that may
// list the pods of the namespace, and a route to the API server. The pod does not count as one of
// the job's.
func completionRights(args JobArgs) []runtime.Object {
	labels := CompletionLabels(args.Job.Name)
	meta := kube.Meta(NamespaceName, completionAccount(args), labels)
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

func operatedCompletionPod(args JobArgs) corev1.PodSpec {
	yes := true
	pod := completionPod(args, corev1.Container{
		// It has Python, and the system pool has it already.
		Image:           args.Images.Reference(args.OperatorImage),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"python3", "-c", operatedCompleteScript},
		Env: []corev1.EnvVar{
			{Name: "PERSIA_JOB", Value: args.Job.Name},
			{Name: "PERSIA_NAMESPACE", Value: NamespaceName},
			{Name: "PERSIA_REPLICAS", Value: AllReplicas(args.Job)},
		},
	}, operatedCompletionUser, capacity.OperatorCompletion, "256Mi")
	pod.ServiceAccountName, pod.AutomountServiceAccountToken = completionAccount(args), &yes
	return pod
}

package persia

import (
	_ "embed"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

// completeScript waits until a job is complete or has failed.
//
//go:embed complete.sh
var completeScript string

// serveScript runs the metrics gateway beside the script in its argument.
//
//go:embed serve.sh
var serveScript string

// FailedStatus is the exit status of the script after the training job has failed.
const FailedStatus = 3

// completionJob returns the Kubernetes Job that ends as a training job ends: its pod ends with success when
// the training job is complete, and with [FailedStatus] when it has failed. Other changes make it another
// one, because a failed job gets another chance when it is changed.
func completionJob(args JobArgs, names names, changes string, podLabels map[string]string, pod corev1.PodSpec) *batchv1.Job {
	labels := kube.Labels(config.Completion, names.completion)
	maps.Copy(podLabels, labels)
	labels[config.JobLabel] = names.job
	spec := batchv1.JobSpec{
		// Its pod may be moved, and its node lost, as often as a long training sees.
		BackoffLimit: new(int32(math.MaxInt32)),
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
				Values:   []int32{FailedStatus},
			},
		}}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: map[string]string{rolesAnnotation: kube.Hash(changes)}},
			Spec:       pod,
		},
	}
	job := &batchv1.Job{ObjectMeta: kube.Meta(NamespaceName, names.completion, labels), Spec: spec}
	contract := args.Job.Contract()
	contract.Useful = args.Predicted
	job.Annotations = contract.Annotation()
	// Pulumi would wait for the end of the training.
	job.Annotations["pulumi.com/skipAwait"] = "true"
	// Pulumi does not wait for the end of a deletion either, so the name must be free at once.
	job.Annotations["pulumi.com/deletionPropagationPolicy"] = "background"
	return job
}

// addCompletion registers a completion. The spec of a Kubernetes Job cannot be changed. The old one goes first,
// so that there is always one at most, also after an interrupted update.
func addCompletion(objects *kube.Objects, name string, job *batchv1.Job, needs []pulumi.CustomResource) {
	objects.Add(name+"-completion", job, needs, pulumi.DeleteBeforeReplace(true), pulumi.ReplaceOnChanges([]string{"spec"}))
}

// rolesAnnotation makes the Kubernetes Job another one when the training job is changed.
const rolesAnnotation = "persia.com/roles"

// text returns an object of Kubernetes' own types as JSON.
func text(object any) string { return string(kube.JSON(object)) }

// completionPod returns the pod of a completion, with one container.
func completionPod(
	on kube.Placement, container corev1.Container, user int64, requests capacity.Resources, memory string,
) corev1.PodSpec {
	container.Name = config.Completion
	container.Resources = corev1.ResourceRequirements{
		Requests: kube.Requests(requests),
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
	}
	pod := corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		RestartPolicy:                corev1.RestartPolicyNever,
		Containers:                   []corev1.Container{container},
	}
	kube.Restrict(&pod, user)
	on.Apply(&pod)
	return pod
}

// completion asks the coordinator of the training job.
func completion(args JobArgs, names names, roles []role, gatewayImage string) *batchv1.Job {
	var changes strings.Builder
	for _, role := range roles {
		changes.WriteString(text(role.pods.Spec))
	}
	labels := map[string]string{config.JobLabel: names.job}
	pod := completionPod(args.SystemPlacement, corev1.Container{
		// The gateway's image has a shell and wget.
		Image:   gatewayImage,
		Command: []string{"/bin/sh", "-c", completeScript},
		Env: []corev1.EnvVar{
			{Name: "PERSIA_COORDINATOR", Value: names.coordinator},
			{Name: "PERSIA_RUN", Value: args.Job.RunID},
			tokenEnv(names.token),
		},
		// Why the training job has failed is the last thing that the script says.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}, metricsGatewayUser, capacity.Completion, "64Mi")
	if runsGateway(args.Job) {
		maps.Copy(labels, gatewayPodLabels(names))
		runGateway(&pod.Containers[0])
	}
	return completionJob(args, names, changes.String(), labels, pod)
}

// runsGateway reports whether the completion runs the metrics gateway of a job, so that the gateway ends when the job
// is complete. The servers of another engine stay, and so does its gateway.
func runsGateway(job config.Job) bool {
	return job.EnableMetrics && job.Engine == config.EngineJobSet
}

// runGateway makes the container run the gateway beside its script. A container of its own would be
// scraped twice: once for each container of the pod.
func runGateway(container *corev1.Container) {
	gateway := gatewayContainer("")
	container.Command = []string{"/bin/sh", "-c", serveScript, "serve.sh", completeScript}
	container.Ports, container.ReadinessProbe = gateway.Ports, gateway.ReadinessProbe
	container.Env = append(container.Env, corev1.EnvVar{Name: "PERSIA_GATEWAY_PORT", Value: strconv.Itoa(metricsGatewayPort)})
	container.Resources = corev1.ResourceRequirements{
		Requests: kube.Requests(capacity.CompletionWithGateway), Limits: gateway.Resources.Limits,
	}
}

// operatedCompleteScript looks at the pods of a job until it is complete or has failed.
//
//go:embed complete.py
var operatedCompleteScript string

// Any user but root: the script writes no files.
const operatedCompletionUser = 1000

// completionRights returns the objects that the pod of a completion needs: an identity that may list the pods of the
// namespace, and a route to the API server. The pod does not count as one of the job's.
func completionRights(names names) []runtime.Object {
	labels := kube.Labels(config.Completion, names.completion)
	meta := kube.Meta(NamespaceName, names.completion, labels)
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}}
	return []runtime.Object{
		&corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: new(false)},
		role,
		kube.BindingOf(role, meta),
		&networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: labels},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      kube.ToAPIServer(),
		}},
	}
}

// operatedCompletion looks at the pods of a job whose pods PERSIA's operator creates.
func operatedCompletion(args JobArgs, names names, changes string) *batchv1.Job {
	pod := completionPod(args.SystemPlacement, corev1.Container{
		// It has Python, and the system pool has it already.
		Image:           args.Images.Reference(args.OperatorImage),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"python3", "-c", operatedCompleteScript},
		Env: []corev1.EnvVar{
			{Name: "PERSIA_JOB", Value: names.job},
			{Name: "PERSIA_NAMESPACE", Value: NamespaceName},
			{Name: "PERSIA_REPLICAS", Value: allReplicas(args.Job)},
		},
	}, operatedCompletionUser, capacity.OperatorCompletion, "256Mi")
	pod.ServiceAccountName, pod.AutomountServiceAccountToken = names.completion, new(true)
	return completionJob(args, names, changes, map[string]string{}, pod)
}

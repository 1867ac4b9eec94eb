package persia

import (
	_ "embed"
	"encoding/json"
	"maps"
	"math"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Completion describes the Kubernetes Job that ends as a training job ends.
type Completion struct {
	Namespace, Job string
	// Changes is a text that changes with the training job, because a failed job gets another
	// chance then.
	Changes string
	// Labels are added to [CompletionLabels] on the pod.
	Labels map[string]string
	// Pod ends with success when the training job is complete, and with status
	// [FailedStatus] when it has failed.
	Pod corev1.PodSpec
}

// FailedStatus is the exit status of the script after the training job has failed.
const FailedStatus = 3

// CompletionLabels returns the labels of the Kubernetes Job of a training job and of its pod.
func CompletionLabels(job string) map[string]string {
	return kube.Labels("completion", kube.LabelName(job, "completion"))
}

// job returns the Kubernetes Job of a completion.
func (c Completion) job() *batchv1.Job {
	labels, podLabels := CompletionLabels(c.Job), CompletionLabels(c.Job)
	labels[JobLabel] = c.Job
	maps.Copy(podLabels, c.Labels)
	// Its pod may be moved, and its node lost, as often as a long training sees.
	backoffLimit := int32(math.MaxInt32)
	job := &batchv1.Job{
		Spec: batchv1.JobSpec{
			BackoffLimit: &backoffLimit,
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action: batchv1.PodFailurePolicyActionFailJob,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
					Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
					Values:   []int32{FailedStatus},
				},
			}}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: map[string]string{rolesAnnotation: kube.Hash(c.Changes)}},
				Spec:       c.Pod,
			},
		},
	}
	job.ObjectMeta = kube.Meta(c.Namespace, completionName(c.Job, job.Spec), labels)
	// Pulumi would wait for the end of the training.
	job.Annotations = map[string]string{"pulumi.com/skipAwait": "true"}
	return job
}

// rolesAnnotation makes the Kubernetes Job another one when the training job is changed.
const rolesAnnotation = "persia.com/roles"

// completionName returns a name that changes with the spec, since the spec of a Kubernetes
// Job cannot be changed.
func completionName(job string, spec batchv1.JobSpec) string {
	text, err := json.Marshal(spec)
	if err != nil {
		// Kubernetes' own types can be written.
		panic(err)
	}
	return kube.LabelName(job, "completion", kube.Hash(string(text)))
}

// completion asks the coordinator of the training job.
func completion(args JobArgs) Completion {
	var changes strings.Builder
	for _, role := range roles(args.Job, args.Namespace) {
		text, err := json.Marshal(podSpec(args, role))
		if err != nil {
			// Kubernetes' own types can be written.
			panic(err)
		}
		changes.Write(text)
	}
	return Completion{
		Namespace: args.Namespace, Job: args.Job.Name, Changes: changes.String(),
		Labels: completionPodLabels(args),
		Pod:    completionPod(args),
	}
}

func completionPodLabels(args JobArgs) map[string]string {
	labels := map[string]string{JobLabel: args.Job.Name}
	if runsGateway(args) {
		maps.Copy(labels, gatewayPodLabels(args))
	}
	return labels
}

func completionPod(args JobArgs) corev1.PodSpec {
	no := false
	pod := corev1.PodSpec{
		AutomountServiceAccountToken: &no,
		EnableServiceLinks:           &no,
		RestartPolicy:                corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "completion",
			// The gateway's image has a shell and wget.
			Image:   args.Images.Reference(config.ImagePushgateway.Reference()),
			Command: []string{"/bin/sh", "-c", completeScript},
			Env:     completionEnv(args),
			// Why the training job has failed is the last thing that the script says.
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Resources: corev1.ResourceRequirements{
				Requests: kube.Requests(capacity.Completion),
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			},
		}},
	}
	if runsGateway(args) {
		runGateway(&pod.Containers[0])
	}
	kube.Restrict(&pod, metricsGatewayUser)
	args.SystemPlacement.Apply(&pod)
	return pod
}

// runsGateway reports whether the completion runs the metrics gateway of a job, so that the
// gateway ends when the job is complete. The servers of another engine stay, and so does its
// gateway.
func runsGateway(args JobArgs) bool {
	return args.Job.EnableMetrics && args.Job.Engine == config.EngineJobSet
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

func completionEnv(args JobArgs) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "PERSIA_COORDINATOR", Value: coordinatorAddress(args)},
		{Name: "PERSIA_RUN", Value: args.Job.RunID},
		tokenEnv(args.Job),
	}
}

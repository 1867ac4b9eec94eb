package persia

import (
	_ "embed"
	"maps"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

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

//go:embed completion.yaml
var completionManifest string

// completionObjects returns the Kubernetes Job of a completion, whose pod has one container and runs as a user, and, by
// their kinds, the objects with which the pod can list the pods of the namespace. Other changes make it another Job.
func completionObjects(
	args JobArgs, names names, changes string, podLabels map[string]string, container corev1.Container, user int64, lists bool,
) map[string]runtime.Object {
	labels, contract := kube.Labels(config.Completion, names.completion), args.Job.Contract()
	maps.Copy(podLabels, labels)
	labels[config.JobLabel] = names.job
	container.Name, contract.Useful = config.Completion, args.Predicted
	of := kube.ByKind(completionManifest, map[string]any{
		"Name": names.completion, "Labels": labels, "PodLabels": podLabels, "Container": container, "Placement": args.SystemPlacement,
		"Contract": contract.Annotation()[config.ContractAnnotation], "Changes": kube.Hash(changes), "Lists": lists,
		"FailedStatus": FailedStatus,
	})
	kube.Restrict(&of["Job"].(*batchv1.Job).Spec.Template.Spec, user)
	return of
}

// addCompletion registers a completion. The spec of a Kubernetes Job cannot be changed. The old one goes first,
// so that there is always one at most, also after an interrupted update.
func addCompletion(objects *kube.Objects, name string, job runtime.Object, needs []pulumi.CustomResource) {
	objects.Add(name+"-completion", job, needs, pulumi.DeleteBeforeReplace(true), pulumi.ReplaceOnChanges([]string{"spec"}))
}

// text returns an object of Kubernetes' own types as JSON.
func text(object any) string { return string(kube.JSON(object)) }

// resources returns what the container of a completion requests, and the limit of its memory.
func resources(requests capacity.Resources, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: kube.Requests(requests), Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
	}
}

// completion asks the coordinator of the training job.
func completion(args JobArgs, names names, roles []role, gatewayImage string) *batchv1.Job {
	var changes strings.Builder
	for _, role := range roles {
		changes.WriteString(text(role.pods.Spec))
	}
	labels := map[string]string{config.JobLabel: names.job}
	container := corev1.Container{
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
		Resources:                resources(capacity.Completion, "64Mi"),
	}
	if runsGateway(args.Job) {
		labels["service"], labels["prom"] = names.gatewayService, names.job
		runGateway(&container)
	}
	return completionObjects(args, names, changes.String(), labels, container, metricsGatewayUser, false)["Job"].(*batchv1.Job)
}

// runsGateway reports whether the completion runs the metrics gateway of a job, so that the gateway ends when the job
// is complete. The servers of another engine stay, and so does its gateway.
func runsGateway(job config.Job) bool {
	return job.EnableMetrics && job.Engine == config.EngineJobSet
}

// runGateway makes the container run the gateway beside its script. A container of its own would be
// scraped twice: once for each container of the pod.
func runGateway(container *corev1.Container) {
	container.Command = []string{"/bin/sh", "-c", serveScript, "serve.sh", completeScript}
	container.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: metricsGatewayPort}}
	container.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/-/ready", Port: intstr.FromString("http")},
	}}
	container.Env = append(container.Env, corev1.EnvVar{Name: "PERSIA_GATEWAY_PORT", Value: strconv.Itoa(metricsGatewayPort)})
	container.Resources = resources(capacity.CompletionWithGateway, "1Gi")
}

// operatedCompleteScript looks at the pods of a job until it is complete or has failed.
//
//go:embed complete.py
var operatedCompleteScript string

const (
	metricsGatewayPort = 9091
	// The image runs as nobody.
	metricsGatewayUser = 65534
	// Any user but root: the script writes no files.
	operatedCompletionUser = 1000
)

// operatedCompletion looks at the pods of a job whose pods PERSIA's operator creates.
func operatedCompletion(args JobArgs, names names, changes string) map[string]runtime.Object {
	return completionObjects(args, names, changes, map[string]string{}, corev1.Container{
		// It has Python, and the system pool has it already.
		Image:           args.Images.Reference(args.OperatorImage),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"python3", "-c", operatedCompleteScript},
		Env: []corev1.EnvVar{
			{Name: "PERSIA_JOB", Value: names.job},
			{Name: "PERSIA_NAMESPACE", Value: NamespaceName},
			{Name: "PERSIA_REPLICAS", Value: allReplicas(args.Job)},
		},
		Resources: resources(capacity.OperatorCompletion, "256Mi"),
	}, operatedCompletionUser, true)
}

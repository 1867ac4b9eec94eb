package persia

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"math"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/capacity"
	"persia/kube"
)

// completeScript waits until a job is complete or has failed.
//
//go:embed complete.sh
var completeScript string

// registerCompletion registers the Kubernetes Job that is complete when the training
// job is, and fails when it fails.
func registerCompletion(ctx *pulumi.Context, name string, args JobArgs, child pulumi.ResourceOption) error {
	_, err := kube.Register(ctx, name+"-completion", completionJob(args), child)
	return err
}

// failedStatus is what the script ends with when the training job has failed.
const failedStatus = 3

// completionJob asks the coordinator of the training job.
func completionJob(args JobArgs) *batchv1.Job {
	labels := kube.Labels("completion", kube.LabelName(args.Job.Name, "completion"))
	labels[JobLabel] = args.Job.Name
	// Its pod may be moved, and its node lost, as often as a long training sees.
	backoffLimit := int32(math.MaxInt32)
	job := &batchv1.Job{
		Spec: batchv1.JobSpec{
			BackoffLimit: &backoffLimit,
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action: batchv1.PodFailurePolicyActionFailJob,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
					Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
					Values:   []int32{failedStatus},
				},
			}}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{rolesAnnotation: rolesHash(args)}},
				Spec:       completionPod(args),
			},
		},
	}
	job.ObjectMeta = kube.Meta(args.Namespace, completionName(args.Job.Name, job.Spec), labels)
	// Pulumi would wait for the end of the training.
	job.Annotations = map[string]string{"pulumi.com/skipAwait": "true"}
	return job
}

// rolesAnnotation makes the Job another one when the training job is changed, since one
// that has failed gets another chance then.
const rolesAnnotation = "persia.com/roles"

func rolesHash(args JobArgs) string {
	sum := sha256.New()
	for _, role := range roles(args.Job, args.Namespace) {
		text, err := json.Marshal(podSpec(args, role))
		if err != nil {
			// Kubernetes' own types can be written.
			panic(err)
		}
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:8]
}

// completionName is another one for another spec, since that of a Job cannot be
// changed.
func completionName(job string, spec batchv1.JobSpec) string {
	text, err := json.Marshal(spec)
	if err != nil {
		// Kubernetes' own types can be written.
		panic(err)
	}
	sum := sha256.Sum256(text)
	return kube.LabelName(job, "completion", hex.EncodeToString(sum[:])[:8])
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
			Image:   args.Images.Reference(MetricsGatewayImage),
			Command: []string{"/bin/sh", "-c", completeScript},
			Env:     completionEnv(args),
			Resources: corev1.ResourceRequirements{
				Requests: kube.Requests(capacity.Completion),
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			},
		}},
	}
	kube.Restrict(&pod, metricsGatewayUser)
	args.SystemPlacement.Apply(&pod)
	return pod
}

func completionEnv(args JobArgs) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "PERSIA_COORDINATOR", Value: coordinatorAddress(args)},
		{Name: "PERSIA_RUN", Value: args.Job.RunID},
	}
}

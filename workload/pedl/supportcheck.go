package pedl

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

const (
	supportCheckName = "test-pedl-support"
	supportCheckPart = "pedl-support-check"
	// supportCheckSeconds are for a node and its driver to come, and two images. A
	// node without Docker takes all of them.
	supportCheckSeconds = 900
)

// NewSupportCheck registers the check of a node of a pool, after the driver. It ends whatever it finds:
// the result is Succeeded, or Failed and why.
func NewSupportCheck(r *kube.Registrar, name string, images config.Images, pool kube.Placement,
	needs []pulumi.CustomResource) pulumi.Output {
	job := r.Component("persia:pedl:SupportCheck", name).Add(name, supportCheck(images, pool), needs, kube.WorkloadTimeouts(),
		// pulumi up --replace makes the new one first otherwise, whose name is taken.
		pulumi.DeleteBeforeReplace(true))
	return job.Status.ApplyT(supportResult)
}

func supportCheck(images config.Images, pool kube.Placement) *batchv1.Job {
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name:            "docker",
			Image:           images.Reference(config.ImageDocker.Reference()),
			Command:         []string{"docker", "run", "--rm", config.ImageCUDA.Reference(), "nvidia-smi"},
			Resources:       corev1.ResourceRequirements{Requests: kube.Requests(capacity.PEDLSupportCheck)},
			SecurityContext: withoutRights(),
		}},
	}
	mountDocker(&pod)
	pool.Apply(&pod)
	job := &batchv1.Job{
		ObjectMeta: meta(AgentNamespaceName, supportCheckName, supportCheckPart),
		Spec: batchv1.JobSpec{
			BackoffLimit:          new(int32(0)),
			ActiveDeadlineSeconds: new(int64(supportCheckSeconds)),
			Template:              template(supportCheckName, supportCheckPart, pod),
		},
	}
	// If the check failed, Pulumi would fail the update. A Job has no condition before it ends.
	job.Annotations = map[string]string{"pulumi.com/waitFor": "jsonpath={.status.conditions[0].type}"}
	return job
}

// supportResult reads the end of the check from the status of its Job.
func supportResult(fields map[string]any) (string, error) {
	var status batchv1.JobStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status); err != nil {
		return "", fmt.Errorf("status of %s: %w", supportCheckName, err)
	}
	for _, condition := range status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet:
			return "Succeeded", nil
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			return fmt.Sprintf("Failed: %s: %s", condition.Reason, condition.Message), nil
		}
	}
	return "Running", nil
}

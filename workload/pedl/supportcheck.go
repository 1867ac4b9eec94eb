package pedl

import (
	_ "embed"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/capacity"
	"persia/config"
	"persia/kube"
)

//go:embed supportcheck.yaml
var supportCheck string

// NewSupportCheck registers the check of a node of a pool, after the driver. It ends whatever it finds:
// the result is Succeeded, or Failed and why.
func NewSupportCheck(r *kube.Registrar, name string, images config.Images, pool kube.Placement,
	needs []pulumi.CustomResource) pulumi.Output {
	check := kube.Manifest(supportCheck, struct {
		kube.Placement
		Docker, CUDA string
		Requests     corev1.ResourceList
	}{pool, images.Reference(config.ImageDocker.Reference()), config.ImageCUDA.Reference(), kube.Requests(capacity.PEDLSupportCheck)})
	job := r.Component("persia:pedl:SupportCheck", name).Add(name, check[0], needs, kube.WorkloadTimeouts(),
		// pulumi up --replace makes the new one first otherwise, whose name is taken.
		pulumi.DeleteBeforeReplace(true))
	return job.Status.ApplyT(supportResult)
}

// supportResult reads the end of the check from the status of its Job.
func supportResult(fields map[string]any) (string, error) {
	var status batchv1.JobStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status); err != nil {
		return "", fmt.Errorf("status of test-pedl-support: %w", err)
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

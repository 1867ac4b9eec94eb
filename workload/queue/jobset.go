package queue

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
)

const (
	jobSetGroup      = "jobset.x-k8s.io"
	jobSetAPIVersion = jobSetGroup + "/v1alpha2"
	// JobSetToken is the type of a JobSet in Pulumi.
	JobSetToken = "kubernetes:" + jobSetAPIVersion + ":JobSet"
)

// JobSet is Kubernetes Jobs that start, are suspended, and end together.
type JobSet = kube.Custom[JobSetSpec]

// JobSetSpec has the fields of a JobSet that the program writes.
type JobSetSpec struct {
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs"`
	// Network names the pods.
	Network map[string]any `json:"network"`
	// SuccessPolicy says when the JobSet is complete: its other Jobs end then. FailurePolicy says how often it starts
	// again when a Job fails.
	SuccessPolicy map[string]any `json:"successPolicy"`
	FailurePolicy map[string]any `json:"failurePolicy"`
	// Suspend removes all pods. It is nil if Kueue decides.
	Suspend *bool `json:"suspend,omitempty"`
}

// ReplicatedJob is a template of Kubernetes Jobs.
type ReplicatedJob struct {
	Name     string                  `json:"name"`
	Replicas int32                   `json:"replicas"`
	Template batchv1.JobTemplateSpec `json:"template"`
}

// JobOf returns the name of the first Job of a role. Its pods have the name and their index.
func JobOf(set, role string) string { return set + "-" + role + "-0" }

// JobSetReplaced makes each change of a JobSet another one, except to suspend it: it cannot be changed
// otherwise. The same holds for its queue. The old pods are gone before the new ones come.
func JobSetReplaced() pulumi.ResourceOption {
	return pulumi.Composite(pulumi.DeleteBeforeReplace(true), pulumi.ReplaceOnChanges([]string{
		"spec.replicatedJobs", "spec.network", "spec.successPolicy", "spec.failurePolicy",
		fmt.Sprintf("metadata.labels[%q]", QueueLabel),
	}))
}

// NewJobSet returns a JobSet.
func NewJobSet(meta metav1.ObjectMeta, spec JobSetSpec) *JobSet {
	return &JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: jobSetAPIVersion, Kind: "JobSet"},
		ObjectMeta: meta,
		Spec:       spec,
	}
}

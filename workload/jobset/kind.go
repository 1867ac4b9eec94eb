package jobset

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
)

const (
	group      = "jobset.x-k8s.io"
	version    = "v1alpha2"
	apiVersion = group + "/" + version
	// Kind is the kind that the controller serves.
	Kind = "JobSet"
	// Token is the type of a JobSet in Pulumi.
	Token = "kubernetes:" + apiVersion + ":" + Kind
)

// JobSet is Kubernetes Jobs that start, are suspended, and end together.
type JobSet = kube.Custom[Spec]

// Spec has the fields of a JobSet that the program writes.
type Spec struct {
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs"`
	Network        Network         `json:"network"`
	SuccessPolicy  SuccessPolicy   `json:"successPolicy"`
	FailurePolicy  FailurePolicy   `json:"failurePolicy"`
	// Suspend removes all pods. It is nil if Kueue decides.
	Suspend *bool `json:"suspend,omitempty"`
}

// ReplicatedJob is a template of Kubernetes Jobs.
type ReplicatedJob struct {
	Name     string                  `json:"name"`
	Replicas int32                   `json:"replicas"`
	Template batchv1.JobTemplateSpec `json:"template"`
}

// Network names the pods.
type Network struct {
	EnableDNSHostnames       bool   `json:"enableDNSHostnames"`
	Subdomain                string `json:"subdomain"`
	PublishNotReadyAddresses bool   `json:"publishNotReadyAddresses"`
}

// SuccessPolicy says when a JobSet is complete: its other Jobs end then.
type SuccessPolicy struct {
	Operator             string   `json:"operator"`
	TargetReplicatedJobs []string `json:"targetReplicatedJobs"`
}

// FailurePolicy says how often a JobSet starts again when a Job fails.
type FailurePolicy struct {
	MaxRestarts int32 `json:"maxRestarts"`
}

// JobName returns the name of the first Job of a role. Its pods have the name and their index.
func JobName(set, role string) string { return set + "-" + role + "-0" }

// Replaced makes each change of a JobSet another one, except to suspend it: it cannot be
// changed otherwise. The same holds for labels that its queue does not let change. The old pods are
// gone before the new ones come.
func Replaced(labels ...string) pulumi.ResourceOption {
	paths := []string{"spec.replicatedJobs", "spec.network", "spec.successPolicy", "spec.failurePolicy"}
	for _, label := range labels {
		paths = append(paths, fmt.Sprintf("metadata.labels[%q]", label))
	}
	return pulumi.Composite(pulumi.DeleteBeforeReplace(true), pulumi.ReplaceOnChanges(paths))
}

// New returns a JobSet.
func New(meta metav1.ObjectMeta, spec Spec) *JobSet {
	return &JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: Kind},
		ObjectMeta: meta,
		Spec:       spec,
	}
}

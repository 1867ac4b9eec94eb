package persia

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
)

// setArgs returns a job of the engine jobset.
func setArgs() JobArgs {
	args := completionArgs()
	args.Job.Engine = config.EngineJobSet
	args.PodAnnotations = func(config.Kind) map[string]string { return nil }
	return args
}

// TestJobSet: a JobSet has the pods that the StatefulSets have, and leaves attempts to the
// coordinator.
func TestJobSet(t *testing.T) {
	args := setArgs()
	set := jobSet(args)
	assert.Equal(t, []string{"nn-worker"}, set.Spec.SuccessPolicy.TargetReplicatedJobs)
	assert.False(t, *set.Spec.Suspend)
	all := roles(args.Job, args.Namespace)
	require.Len(t, set.Spec.ReplicatedJobs, len(all))
	for i, role := range all {
		t.Run(role.Name, func(t *testing.T) {
			job := set.Spec.ReplicatedJobs[i]
			assert.Equal(t, role.Name, job.Name)
			assert.EqualValues(t, 1, job.Replicas)
			spec := job.Template.Spec
			assert.EqualValues(t, role.config.Replicas, *spec.Completions)
			assert.EqualValues(t, role.config.Replicas, *spec.Parallelism)
			assert.Equal(t, batchv1.TerminatingOrFailed, *spec.PodReplacementPolicy, "the pod of a lost node has a substitute at once")
			assert.Nil(t, spec.PodFailurePolicy, "it would forbid that")
			if role.Name == "nn-worker" {
				assert.Equal(t, "0", *spec.SuccessPolicy.Rules[0].SucceededIndexes, "the coordinator is the last to end")
			} else {
				assert.Nil(t, spec.SuccessPolicy)
			}
			assert.NotNil(t, spec.BackoffLimitPerIndex, "pods wait only for their own failures")

			pod := statefulSet(args, role).Spec.Template
			pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, leaveLostNodes()...)
			assert.Equal(t, pod, spec.Template)
			for _, taint := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
				at := slices.IndexFunc(spec.Template.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == taint })
				require.GreaterOrEqual(t, at, 0, taint)
				assert.EqualValues(t, 10, *spec.Template.Spec.Tolerations[at].TolerationSeconds)
			}
			env := map[string]corev1.EnvVar{}
			for _, variable := range pod.Spec.Containers[0].Env {
				env[variable.Name] = variable
			}
			assert.Equal(t, "1", env["PERSIA_ONCE"].Value)
			assert.Equal(t, args.Job.Name+"-nn-worker-0-0."+args.Job.Name+"."+NamespaceName+".svc:8886", env["PERSIA_COORDINATOR"].Value)
			assert.Equal(t, "metadata.labels['batch.kubernetes.io/job-completion-index']", env["REPLICA_INDEX"].ValueFrom.FieldRef.FieldPath)
			assert.Equal(t, "metadata.labels['batch.kubernetes.io/controller-uid']", env["PERSIA_REVISION"].ValueFrom.FieldRef.FieldPath)
		})
	}
}

func TestSuspendedJobSet(t *testing.T) {
	args := setArgs()
	args.Job.Suspend = true
	set := jobSet(args)
	assert.True(t, *set.Spec.Suspend)
	// Anything else that changed would make it another one.
	running := jobSet(setArgs())
	assert.Equal(t, running.Spec.ReplicatedJobs, set.Spec.ReplicatedJobs)
}

// TestQueuedJobSet checks that Kueue knows the job, and decides when its pods start.
func TestQueuedJobSet(t *testing.T) {
	args := setArgs()
	args.QueueLabels = map[string]string{"kueue.x-k8s.io/queue-name": "ranking"}
	set := jobSet(args)
	assert.Equal(t, "ranking", set.Labels["kueue.x-k8s.io/queue-name"])
	assert.Nil(t, set.Spec.Suspend)
	args.Job.Suspend = true
	assert.True(t, *jobSet(args).Spec.Suspend)
}

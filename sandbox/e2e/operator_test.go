package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"persia/workload/persia/persiav1"
)

var persiaJobs = schema.GroupVersionResource{Group: persiav1.Group, Version: persiav1.Version, Resource: persiav1.Plural}

const (
	// left is the job that is left to PERSIA's operator.
	left = "left"
	// held is the name of its pod.
	held = left + "-dataloader-0"

	// completionObjects are the Kubernetes Job that shows the end of a job, and its rights.
	completionObjects = 5

	persiaOperatorUser = "system:serviceaccount:persia-operator:persia-operator"
)

// TestPersiaOperator leaves a job to PERSIA's operator, which runs in TestTrain. Here, a pod that the test
// creates is the operator's.
func TestPersiaOperator(t *testing.T) {
	nightly(t)
	t.Parallel()
	o := newOperatorStack(t)
	o.up(t)
	o.assertOn("system", 1, o.pods("persia-operator", ""))
	t.Run("what the API server refuses", o.assertSchema)
	t.Run("the operator's rights", o.assertRights)
	t.Run("nothing to do", func(t *testing.T) {
		assert.Empty(t, o.up(t))
		assert.Empty(t, refreshChanges(t, o.s))
	})
	o.createPod(t)
	t.Run("no pod is evicted", o.assertKept)
	t.Run("a change waits for the last pod", o.assertChangeWaits)
	t.Run("a stop and a start", func(t *testing.T) {
		o.settings["suspend"] = true
		assert.Equal(t, map[string]int{"replace": 2, "delete": completionObjects}, o.up(t))
		o.settings["suspend"] = false
		assert.Equal(t, map[string]int{"replace": 2, "create": completionObjects}, o.up(t))
	})
	require.NoError(t, o.s.Destroy(t.Context()))
	o.assertEmpty()
}

// createPod creates a pod of the job, with the name that the operator gives it, which does not end by
// itself.
func (o *operatorStack) createPod(t *testing.T) {
	t.Helper()
	_, err := o.CoreV1().Pods("persia").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: held, Labels: map[string]string{"persia_job": left}, Finalizers: []string{"sandbox.persia.com/hold"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "dataloader", Image: "persiaml/persia-cpu-runtime:latest"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	await(t, func() bool {
		pods := o.pods("persia", "persia_job="+left)
		return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning
	}, "the pod runs")
}

// operatorStack is a stack with one job, which is left to the operator.
type operatorStack struct {
	cluster
	project  string
	settings object
}

func newOperatorStack(t *testing.T) *operatorStack {
	t.Helper()
	o := &operatorStack{project: t.TempDir(), settings: job(left, object{"engine": "operator", "enableMetrics": true})}
	o.write(t)
	o.cluster = cluster{t: t, s: newSandboxOf(t, o.project, t.TempDir(), "madeup")}
	return o
}

func (o *operatorStack) write(t *testing.T) {
	t.Helper()
	stackText(t, o.project, madeUp{jobs: []object{o.settings}})
}

// up brings the settings up, and counts the changes.
func (o *operatorStack) up(t *testing.T) map[string]int {
	t.Helper()
	o.write(t)
	changes := upChanges(t, o.s)
	if o.Interface == nil {
		o.cluster = newCluster(o.t, o.s)
	}
	return changes
}

func (o *operatorStack) jobs(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	config, err := o.s.Cluster().RESTConfig()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client.Resource(persiaJobs).Namespace("persia")
}

func (o *operatorStack) job(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	job, err := o.jobs(t).Get(t.Context(), left, metav1.GetOptions{})
	require.NoError(t, err)
	return job
}

// assertSchema sees what the API server says to a job with a mistake.
func (o *operatorStack) assertSchema(t *testing.T) {
	for name, test := range map[string]struct {
		change func(spec object)
		says   string
	}{
		"none":                {func(object) {}, ""},
		"a misspelt field":    {func(spec object) { spec["nnWorkers"] = object{} }, `unknown field "spec.nnWorkers"`},
		"one in a volume":     {func(spec object) { spec["volumes"].([]any)[0].(object)["emptydir"] = object{} }, `unknown field "spec.volumes[0].emptydir"`},
		"replicas in letters": {func(spec object) { spec["nnWorker"].(object)["replicas"] = "two" }, "spec.nnWorker.replicas"},
		"no processes":        {func(spec object) { delete(spec["nnWorker"].(object), "nprocPerNode") }, "spec.nnWorker.nprocPerNode"},
		"a number of CPUs": {func(spec object) {
			spec["dataloader"].(object)["resources"] = object{"limits": object{"cpu": int64(8)}}
		}, "spec.dataloader.resources.limits.cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			job := &unstructured.Unstructured{Object: object{"apiVersion": "persia.com/v1", "kind": "PersiaJob", "spec": o.job(t).Object["spec"]}}
			job.SetName("other")
			test.change(job.Object["spec"].(object))
			_, err := o.jobs(t).Create(t.Context(), job, metav1.CreateOptions{
				FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll},
			})
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, test.says)
		})
	}
}

// assertRights checks the rights of the operator: it may do what its source does, but nothing that would
// be worth a theft.
func (o *operatorStack) assertRights(t *testing.T) {
	for _, test := range []struct {
		verb, group, resource, namespace string
		allowed                          bool
	}{
		{"list", "persia.com", "persiajobs", "", true},
		{"watch", "persia.com", "persiajobs", "", true},
		{"patch", "persia.com", "persiajobs", "persia", true},
		{"create", "", "pods", "persia", true},
		{"delete", "", "pods", "persia", true},
		{"create", "", "services", "persia", true},
		{"delete", "", "services", "persia", true},

		{"create", "persia.com", "persiajobs", "persia", false},
		{"delete", "persia.com", "persiajobs", "persia", false},
		{"get", "", "secrets", "persia", false},
		{"list", "", "secrets", "", false},
		{"create", "", "pods/exec", "persia", false},
		{"get", "", "pods/log", "persia", false},
		{"update", "", "pods", "persia", false},
		{"list", "", "pods", "", false},
		{"create", "", "pods", "persia-operator", false},
		{"list", "", "services", "nats-io", false},
		{"create", "", "serviceaccounts/token", "persia", false},
		{"get", "", "configmaps", "persia", false},
		{"create", "rbac.authorization.k8s.io", "rolebindings", "persia", false},
		{"update", "apiextensions.k8s.io", "customresourcedefinitions", "", false},
	} {
		resource, subresource, _ := strings.Cut(test.resource, "/")
		review, err := o.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   persiaOperatorUser,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:persia-operator", "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: test.verb, Group: test.group, Resource: resource, Subresource: subresource, Namespace: test.namespace,
				},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Equal(t, test.allowed, review.Status.Allowed, "%s %s in namespace %q", test.verb, test.resource, test.namespace)
	}
}

// assertKept tries to evict a pod, which nothing would make again.
func (o *operatorStack) assertKept(t *testing.T) {
	err := o.CoreV1().Pods("persia").EvictV1(t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: held},
	})
	assert.True(t, apierrors.IsTooManyRequests(err), "%v", err)
}

// assertChangeWaits changes the job while its pod does not end: the new job comes when the pod is gone,
// and not before.
func (o *operatorStack) assertChangeWaits(t *testing.T) {
	before := o.guard(t)
	o.settings["logLevel"] = "debug"
	o.write(t)
	up := begin(func() error { return o.s.Apply(t.Context()) })
	// Down needs the lock that up holds.
	t.Cleanup(func() {
		o.release(t)
		_ = up.wait()
	})
	awaitUnless(t, patience, up.over, func() bool {
		guard := o.guard(t)
		return guard.UID != before.UID && guard.Status.ExpectedPods == 1
	}, "the new guard counts the pod")
	_, err := o.jobs(t).Get(t.Context(), left, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "the new job waits: %v", err)

	now := int64(0)
	require.NoError(t, o.CoreV1().Pods("persia").Delete(t.Context(), held, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	o.release(t)
	require.NoError(t, up.wait())
	o.job(t)
}

// guard returns the job's disruption budget, or an empty one.
func (o *operatorStack) guard(t *testing.T) *policyv1.PodDisruptionBudget {
	t.Helper()
	guard, err := o.PolicyV1().PodDisruptionBudgets("persia").Get(t.Context(), left, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
	return guard
}

// release lets the pod end.
func (o *operatorStack) release(t *testing.T) {
	t.Helper()
	_, err := o.CoreV1().Pods("persia").Patch(context.WithoutCancel(t.Context()), held, types.MergePatchType,
		[]byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
}

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	// left is the job that is left to PERSIA's operator.
	left = "left"

	// completionObjects are the Kubernetes Job that shows the end of a job, and its rights.
	completionObjects = 5

	persiaOperatorUser = "system:serviceaccount:persia-operator:persia-operator"
)

// TestPersiaOperator leaves a job to PERSIA's operator, whose part the test plays,
// and takes it through all that happens to a job.
func TestPersiaOperator(t *testing.T) {
	t.Parallel()
	started := time.Now()
	o := newOperatorStack(t)

	t.Run("without the operator's program", func(t *testing.T) {
		o.up(t)
		o.assertEstablished()
		o.assertOn("system", 1, o.pods("persia-operator", ""))
		assert.Empty(t, o.job(t).GetFinalizers(), "nobody has taken the job")
		assert.Empty(t, o.pods("persia", "persia_job="+left))
	})
	t.Run("what the API server refuses", o.assertSchema)
	t.Run("the operator's rights", o.assertRights)
	t.Run("its pods", func(t *testing.T) {
		o.operator.start(t, o.cluster)
		o.awaitPods(t, 5)
		assert.Equal(t, []string{"persiajobs.persia.com"}, o.job(t).GetFinalizers())
		await(t, func() bool {
			_, err := o.CoreV1().Services("persia").Get(t.Context(), left+"-metrics-gateway-service", metav1.GetOptions{})
			return err == nil
		}, "the operator creates the gateway's Service after the pods")
		nnWorker, err := o.CoreV1().Pods("persia").Get(t.Context(), left+"-nn-worker-0", metav1.GetOptions{})
		require.NoError(t, err)
		var mounts []string
		for _, mount := range nnWorker.Spec.Containers[0].VolumeMounts {
			mounts = append(mounts, mount.MountPath)
		}
		assert.Subset(t, mounts, []string{"/opt/persia", "/dev/shm"})
	})
	t.Run("nothing to do", func(t *testing.T) {
		assert.Empty(t, o.up(t))
		assert.Empty(t, refreshChanges(t, o.s))
	})
	t.Run("no pod is evicted", o.assertKept)
	t.Run("a change waits for the last pod", o.assertChangeWaits)
	t.Run("a stop and a start", func(t *testing.T) {
		o.settings["suspend"] = true
		assert.Equal(t, map[string]int{"replace": 2, "delete": completionObjects}, o.up(t))
		o.awaitPods(t, 0)
		o.settings["suspend"] = false
		assert.Equal(t, map[string]int{"replace": 2, "create": completionObjects}, o.up(t))
		o.awaitPods(t, 5)
	})
	t.Run("what the operator did", func(t *testing.T) {
		o.operator.assertNoFailures(t)
		assert.Equal(t, []string{
			"create pods", "create services", "delete pods", "delete services",
			"list persiajobs", "list pods", "list services", "patch persiajobs", "watch persiajobs",
		}, o.used(t), "every right that it has, and no other")
	})
	t.Run("down", func(t *testing.T) {
		require.NoError(t, o.s.Destroy(t.Context()))
		o.assertEmpty()
	})
	fmt.Fprintf(t.Output(), "TIME a job of PERSIA's operator from up to down: %s\n", time.Since(started).Round(time.Second))
}

// operatorStack is a stack with one job, which is left to the operator.
type operatorStack struct {
	cluster
	project  string
	settings object
	operator *persiaOperator
}

func newOperatorStack(t *testing.T) *operatorStack {
	t.Helper()
	o := &operatorStack{project: t.TempDir(), settings: job(left, object{"engine": "operator", "enableMetrics": true})}
	// It lives until the sandbox is down, which needs it to let the job go.
	o.operator = newPersiaOperator()
	t.Cleanup(o.operator.end)
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

func (o *operatorStack) assertEstablished() {
	o.t.Helper()
	crd, err := o.extensions.ApiextensionsV1().CustomResourceDefinitions().Get(o.t.Context(), "persiajobs.persia.com", metav1.GetOptions{})
	require.NoError(o.t, err)
	assert.True(o.t, slices.ContainsFunc(crd.Status.Conditions, func(c extensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == extensionsv1.Established && c.Status == extensionsv1.ConditionTrue
	}))
	assert.False(o.t, slices.ContainsFunc(crd.Status.Conditions, func(c extensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == extensionsv1.NonStructuralSchema && c.Status == extensionsv1.ConditionTrue
	}))
}

// awaitPods checks that there are so many pods, all of them running.
func (o *operatorStack) awaitPods(t *testing.T, count int) {
	t.Helper()
	await(t, func() bool {
		pods := o.pods("persia", "persia_job="+left)
		return len(pods) == count && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning
		})
	}, "%d pods run", count)
}

// assertSchema sees what the API server says to a job with a mistake.
func (o *operatorStack) assertSchema(t *testing.T) {
	for name, test := range map[string]struct {
		change func(spec object)
		says   string
	}{
		"none":                {func(object) {}, ""},
		"a misspelt field":    {func(spec object) { spec["nnWorkers"] = object{} }, `unknown field "spec.nnWorkers"`},
		"one in a role":       {func(spec object) { spec["nnWorker"].(object)["replica"] = 1 }, `unknown field "spec.nnWorker.replica"`},
		"one in a volume":     {func(spec object) { spec["volumes"].([]any)[0].(object)["emptydir"] = object{} }, `unknown field "spec.volumes[0].emptydir"`},
		"replicas in letters": {func(spec object) { spec["nnWorker"].(object)["replicas"] = "two" }, "spec.nnWorker.replicas"},
		"fewer than none":     {func(spec object) { spec["dataloader"].(object)["replicas"] = int64(-1) }, "spec.dataloader.replicas"},
		"no processes":        {func(spec object) { delete(spec["nnWorker"].(object), "nprocPerNode") }, "spec.nnWorker.nprocPerNode"},
		"no configuration":    {func(spec object) { delete(spec["persiaEnv"].(object), "PERSIA_GLOBAL_CONFIG") }, "spec.persiaEnv.PERSIA_GLOBAL_CONFIG"},
		"a number of CPUs": {func(spec object) {
			spec["dataloader"].(object)["resources"] = object{"limits": object{"cpu": int64(8)}}
		}, "spec.dataloader.resources.limits.cpu"},
		"an unknown policy": {func(spec object) { spec["restartPolicy"] = "Sometimes" }, "spec.restartPolicy"},
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
		{"list", "", "pods", "persia", true},
		{"delete", "", "pods", "persia", true},
		{"create", "", "services", "persia", true},
		{"list", "", "services", "persia", true},
		{"delete", "", "services", "persia", true},

		{"create", "persia.com", "persiajobs", "persia", false},
		{"delete", "persia.com", "persiajobs", "persia", false},
		{"get", "", "secrets", "persia", false},
		{"list", "", "secrets", "", false},
		{"get", "", "secrets", "nats-io", false},
		{"create", "", "pods/exec", "persia", false},
		{"get", "", "pods/log", "persia", false},
		{"update", "", "pods", "persia", false},
		{"list", "", "pods", "", false},
		{"create", "", "pods", "persia-operator", false},
		{"create", "", "pods", "nats-io", false},
		{"delete", "", "pods", "nats-io", false},
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
		ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: left + "-dataloader-0"},
	})
	assert.True(t, apierrors.IsTooManyRequests(err), "%v", err)
}

// assertChangeWaits changes the job while one of its pods does not end: the new job
// comes when that pod is gone, and not before.
func (o *operatorStack) assertChangeWaits(t *testing.T) {
	before, guardBefore := o.uids(t), o.guard(t)
	held := left + "-dataloader-0"
	o.hold(t, held, `["sandbox.persia.com/hold"]`)
	o.settings["logLevel"] = "debug"
	o.write(t)
	up := begin(func() error { return o.s.Apply(t.Context()) })
	// Down needs the lock that up holds.
	t.Cleanup(func() {
		o.hold(t, held, "null")
		_ = up.wait()
	})
	awaitWhile(t, up.ended, func() bool {
		guard, pods := o.guard(t), o.pods("persia", "persia_job="+left)
		return guard.UID != guardBefore.UID && guard.Status.ExpectedPods == 1 && len(pods) == 1 && pods[0].Name == held
	}, "all pods but one are gone, and the new guard counts that one")
	_, err := o.jobs(t).Get(t.Context(), left, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "the new job waits: %v", err)

	o.hold(t, held, "null")
	require.NoError(t, up.wait())
	o.awaitPods(t, 5)
	for uid := range o.uids(t) {
		assert.NotContains(t, before, uid)
	}
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

// hold keeps a pod from ending, or with null lets it end.
func (o *operatorStack) hold(t *testing.T, pod, finalizers string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"finalizers": %s}}`, finalizers)
	ctx := context.WithoutCancel(t.Context())
	_, err := o.CoreV1().Pods("persia").Patch(ctx, pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

func (o *operatorStack) uids(t *testing.T) map[types.UID]bool {
	t.Helper()
	uids := map[types.UID]bool{}
	for _, pod := range o.pods("persia", "persia_job="+left) {
		uids[pod.UID] = true
	}
	return uids
}

// used returns the rights that the operator has made use of, and was refused none.
func (o *operatorStack) used(t *testing.T) []string {
	t.Helper()
	rights := map[string]bool{}
	for _, event := range eventsOf(t, o.s, persiaOperatorUser) {
		rights[event.Verb+" "+event.ObjectRef.Resource] = true
		assert.NotEqual(t, 403, event.ResponseStatus.Code, "%s %s was forbidden", event.Verb, event.RequestURI)
	}
	return slices.Sorted(maps.Keys(rights))
}

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"persia/internal/testkit"
	"persia/sandbox"
	"persia/sandbox/gcp/gke"
)

const poolLabel = "cloud.google.com/gke-nodepool"

// cluster reads the objects of a stack's control plane.
type cluster struct {
	t testing.TB
	s *sandbox.Sandbox
	kubernetes.Interface
}

func newCluster(t testing.TB, s *sandbox.Sandbox) cluster {
	t.Helper()
	config := testkit.Must(s.Cluster().RESTConfig())(t)
	// Waits list pods again and again. In this encoding, it takes less of the API server's time and of this process's.
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	return cluster{t: t, s: s, Interface: testkit.Must(kubernetes.NewForConfig(config))(t)}
}

// nodes returns all nodes, by name.
func (c cluster) nodes() map[string]corev1.Node {
	c.t.Helper()
	list := testkit.Must(c.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{}))(c.t)
	nodes := map[string]corev1.Node{}
	for _, node := range list.Items {
		nodes[node.Name] = node
	}
	return nodes
}

// pods returns the pods of a namespace that a label selector selects.
func (c cluster) pods(namespace, selector string) []corev1.Pod {
	c.t.Helper()
	return testkit.Must(c.CoreV1().Pods(namespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: selector}))(c.t).Items
}

// assertOn checks that count pods are running and ready, each on a node of the pool.
func (c cluster) assertOn(pool string, count int, pods []corev1.Pod) {
	c.t.Helper()
	nodes := c.nodes()
	assert.Len(c.t, pods, count)
	for _, pod := range pods {
		assert.Equal(c.t, corev1.PodRunning, pod.Status.Phase, pod.Name)
		assert.False(c.t, readySince(pod).IsZero(), "%s is not ready", pod.Name)
		assert.Equal(c.t, pool, nodes[pod.Spec.NodeName].Labels[poolLabel], "%s is on %s", pod.Name, pod.Spec.NodeName)
	}
}

// readySince is when a pod became ready, or zero.
func readySince(pod corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// rolePods returns the replicas of a job's roles.
func (c cluster) rolePods(job string) []corev1.Pod {
	c.t.Helper()
	var pods []corev1.Pod
	for _, role := range []string{"nn-worker", "dataloader", "embedding-worker", "embedding-ps"} {
		pods = append(pods, c.podsOfRole(job, role)...)
	}
	return pods
}

func (c cluster) podsOfRole(job, role string) []corev1.Pod {
	c.t.Helper()
	pods := c.pods("persia", "persia_job="+job+",app.kubernetes.io/name="+role)
	require.NotEmpty(c.t, pods, "%s of %s", role, job)
	return pods
}

// uids returns the identities of pods, in order.
func uids(pods []corev1.Pod) []string {
	var uids []string
	for _, pod := range pods {
		uids = append(uids, string(pod.UID))
	}
	slices.Sort(uids)
	return uids
}

// assertBound checks that a claim and a volume are bound to each other, and returns the volume.
func (c cluster) assertBound(namespace, claimName, volumeName string) *corev1.PersistentVolume {
	c.t.Helper()
	claim := testkit.Must(c.CoreV1().PersistentVolumeClaims(namespace).Get(c.t.Context(), claimName, metav1.GetOptions{}))(c.t)
	volume := testkit.Must(c.CoreV1().PersistentVolumes().Get(c.t.Context(), volumeName, metav1.GetOptions{}))(c.t)
	assert.Equal(c.t, corev1.ClaimBound, claim.Status.Phase, claimName)
	assert.Equal(c.t, volumeName, claim.Spec.VolumeName)
	require.NotNil(c.t, volume.Spec.ClaimRef, volumeName)
	assert.Equal(c.t, claim.UID, volume.Spec.ClaimRef.UID)
	return volume
}

func (c cluster) nodesOf(pool string) []string {
	var names []string
	for name, node := range c.nodes() {
		if node.Labels[poolLabel] == pool {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// await waits for what comes by itself.
func (c cluster) await(condition func() bool, what string) {
	c.t.Helper()
	awaitUnless(c.t, patience, c.lost, condition, "%s", what)
}

// lost names a Job that has failed, or a pod that nothing replaces. Nothing waits for what comes after it.
func (c cluster) lost() string {
	jobs, err := c.BatchV1().Jobs("").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, job := range jobs.Items {
		if end := endOf(&job); end == batchv1.JobFailed {
			return fmt.Sprintf("the Job %s has failed", job.Name)
		}
	}
	pods, err := c.CoreV1().Pods("").List(c.t.Context(), metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodFailed)})
	if err != nil {
		return err.Error()
	}
	for _, pod := range pods.Items {
		if metav1.GetControllerOf(&pod) == nil && pod.Status.Phase == corev1.PodFailed {
			return fmt.Sprintf("the pod %s has failed: %s", pod.Name, pod.Status.Message)
		}
	}
	return ""
}

// endOf returns how a Job has ended, or nothing.
func endOf(job *batchv1.Job) batchv1.JobConditionType {
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			return condition.Type
		}
	}
	return ""
}

// auditEvent is a request to the API server, and its answer.
type auditEvent struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// eventsOf returns the requests of a service account.
func eventsOf(t testing.TB, s *sandbox.Sandbox, user string) []auditEvent {
	t.Helper()
	file := testkit.Must(os.Open(s.Cluster().AuditLog()))(t)
	defer func() { _ = file.Close() }()
	var events []auditEvent
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		require.NoError(t, json.Unmarshal(lines.Bytes(), &event))
		if event.User.Username == user {
			events = append(events, event)
		}
	}
	require.NoError(t, lines.Err())
	return events
}

// assertAllowed waits until a service account has sent some requests, and checks that it was refused nothing.
func (c cluster) assertAllowed(user string, requests ...string) {
	c.t.Helper()
	asked := map[string]int{}
	await(c.t, func() bool {
		clear(asked)
		for _, event := range eventsOf(c.t, c.s, "system:serviceaccount:"+user) {
			asked[event.Verb+" "+event.ObjectRef.Resource]++
			assert.NotEqual(c.t, 403, event.ResponseStatus.Code, "%s %s was forbidden", event.Verb, event.RequestURI)
		}
		return !slices.ContainsFunc(requests, func(request string) bool { return asked[request] == 0 })
	}, "%s has sent all of %v", user, requests)
}

// assertEmpty checks that nothing is left except what a control plane creates by itself.
func (c cluster) assertEmpty() {
	c.t.Helper()
	kinds := []string{"Node", "Pod", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CustomResourceDefinition", "MutatingWebhookConfiguration"}
	var left []string
	await(c.t, func() bool {
		left = nil
		err := eachObject(c.t.Context(), c.s, func(item unstructured.Unstructured) {
			if _, addon := item.GetLabels()[gke.AddonLabel]; addon {
				return // GKE's own
			}
			if slices.Contains(kinds, item.GetKind()) || item.GetLabels()["app.kubernetes.io/part-of"] == "persia" ||
				item.GetKind() == "Namespace" && item.GetName() != "default" && !strings.HasPrefix(item.GetName(), "kube-") {
				left = append(left, item.GetKind()+" "+item.GetName())
			}
		})
		return err == nil
	}, "all objects can be listed")
	assert.Empty(c.t, left, "what is left")
}

// list returns the objects in the namespace persia of a resource, which is GROUP/VERSION/NAME.
func (c cluster) list(resource string) []unstructured.Unstructured {
	c.t.Helper()
	config := testkit.Must(c.s.Cluster().RESTConfig())(c.t)
	parts := strings.Split(resource, "/")
	list, err := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}).
		Namespace("persia").List(c.t.Context(), metav1.ListOptions{})
	require.NoError(c.t, err)
	return list.Items
}

// eachObject calls see with each object of the control plane.
func eachObject(ctx context.Context, s *sandbox.Sandbox, see func(unstructured.Unstructured)) error {
	config, err := s.Cluster().RESTConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			items, err := client.Resource(gv.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("%s: %w", kind.Name, err)
			}
			for _, item := range items.Items {
				see(item)
			}
		}
	}
	return nil
}

package e2e

import (
	"bufio"
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
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"persia/sandbox"
	"persia/sandbox/gcp/gke"
)

const poolLabel = "cloud.google.com/gke-nodepool"

// cluster reads the objects of a stack's control plane.
type cluster struct {
	t testing.TB
	s *sandbox.Sandbox
	kubernetes.Interface
	extensions extensions.Interface
}

func newCluster(t testing.TB, s *sandbox.Sandbox) cluster {
	t.Helper()
	config, err := s.Cluster().RESTConfig()
	require.NoError(t, err)
	// Waits list pods again and again. In this encoding, it takes less of the API server's time and of this process's.
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	extensions, err := extensions.NewForConfig(config)
	require.NoError(t, err)
	return cluster{t: t, s: s, Interface: client, extensions: extensions}
}

// nodes returns all nodes, by name.
func (c cluster) nodes() map[string]corev1.Node {
	c.t.Helper()
	list, err := c.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	require.NoError(c.t, err)
	nodes := map[string]corev1.Node{}
	for _, node := range list.Items {
		nodes[node.Name] = node
	}
	return nodes
}

// pods returns the pods of a namespace that a label selector selects.
func (c cluster) pods(namespace, selector string) []corev1.Pod {
	c.t.Helper()
	list, err := c.CoreV1().Pods(namespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(c.t, err)
	return list.Items
}

// assertOn checks that count pods are running and ready, each on a node of
// the pool.
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

// assertBound checks that a claim is bound to its volume, and the volume to
// the claim.
func (c cluster) assertBound(claimName, volumeName string) {
	c.t.Helper()
	claim, err := c.CoreV1().PersistentVolumeClaims("persia").Get(c.t.Context(), claimName, metav1.GetOptions{})
	require.NoError(c.t, err)
	volume, err := c.CoreV1().PersistentVolumes().Get(c.t.Context(), volumeName, metav1.GetOptions{})
	require.NoError(c.t, err)
	assert.Equal(c.t, corev1.ClaimBound, claim.Status.Phase)
	assert.Equal(c.t, volumeName, claim.Spec.VolumeName)
	assert.Equal(c.t, corev1.VolumeBound, volume.Status.Phase)
	require.NotNil(c.t, volume.Spec.ClaimRef)
	assert.Equal(c.t, claim.UID, volume.Spec.ClaimRef.UID)
	volumes, err := c.CoreV1().PersistentVolumes().List(c.t.Context(), metav1.ListOptions{})
	require.NoError(c.t, err)
	assert.Len(c.t, volumes.Items, 1, "the default storage class has provisioned nothing")
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

// operatorEvents returns the requests of the NATS operator, as the service account
// that the program made for it.
func operatorEvents(t testing.TB, s *sandbox.Sandbox) []auditEvent {
	t.Helper()
	return eventsOf(t, s, "system:serviceaccount:nats-io:nats-operator")
}

// eventsOf returns the requests of a service account.
func eventsOf(t testing.TB, s *sandbox.Sandbox, user string) []auditEvent {
	t.Helper()
	file, err := os.Open(s.Cluster().AuditLog())
	require.NoError(t, err)
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

// assertOperatorAllowed checks that the NATS operator acted as its service
// account, and was never refused.
func (c cluster) assertOperatorAllowed() {
	c.t.Helper()
	required := []string{"create pods", "create secrets", "patch natsclusters", "get customresourcedefinitions"}
	requests := map[string]int{}
	// The operator writes the status of a NatsCluster some time after its pods are ready.
	await(c.t, func() bool {
		clear(requests)
		for _, event := range operatorEvents(c.t, c.s) {
			requests[event.Verb+" "+event.ObjectRef.Resource]++
			assert.NotEqual(c.t, 403, event.ResponseStatus.Code, "%s %s was forbidden", event.Verb, event.RequestURI)
		}
		return !slices.ContainsFunc(required, func(request string) bool { return requests[request] == 0 })
	}, "the operator has sent all of %v", required)
	log := readLog(c.t, c.s)
	assert.Contains(c.t, log, "started workers")
	assert.NotContains(c.t, strings.ToLower(log), "forbidden")
}

// readLog returns the output of the programs that really ran.
func readLog(t testing.TB, s *sandbox.Sandbox) string {
	t.Helper()
	entries, err := os.ReadDir(s.AgentLogs())
	require.NoError(t, err)
	require.NotEmpty(t, entries, "no program has run")
	var logs strings.Builder
	for _, entry := range entries {
		text, err := os.ReadFile(s.AgentLogs() + "/" + entry.Name())
		require.NoError(t, err)
		logs.Write(text)
	}
	return logs.String()
}

// assertEmpty checks that nothing is left except the objects that a control plane creates by
// itself.
func (c cluster) assertEmpty() {
	c.t.Helper()
	ctx, all := c.t.Context(), metav1.ListOptions{}

	nodes, err := c.CoreV1().Nodes().List(ctx, all)
	require.NoError(c.t, err)
	assert.Empty(c.t, names(nodes.Items), "nodes")
	pods, err := c.CoreV1().Pods("").List(ctx, all)
	require.NoError(c.t, err)
	assert.Empty(c.t, names(pods.Items), "pods")
	pools, err := c.CoreV1().ConfigMaps("kube-system").List(ctx, metav1.ListOptions{LabelSelector: gke.AutoscaledLabel})
	require.NoError(c.t, err)
	assert.Empty(c.t, names(pools.Items), "autoscaled pools")
	claims, err := c.CoreV1().PersistentVolumeClaims("").List(ctx, all)
	require.NoError(c.t, err)
	assert.Empty(c.t, names(claims.Items), "claims")
	volumes, err := c.CoreV1().PersistentVolumes().List(ctx, all)
	require.NoError(c.t, err)
	assert.Empty(c.t, names(volumes.Items), "volumes")
	own := metav1.ListOptions{LabelSelector: "!" + gke.AddonLabel}
	classes, err := c.StorageV1().StorageClasses().List(ctx, own)
	require.NoError(c.t, err)
	assert.Empty(c.t, names(classes.Items), "storage classes")
	definitions, err := c.extensions.ApiextensionsV1().CustomResourceDefinitions().List(ctx, own)
	require.NoError(c.t, err)
	assert.Empty(c.t, names(definitions.Items), "custom resources")
	namespaces, err := c.CoreV1().Namespaces().List(ctx, all)
	require.NoError(c.t, err)
	assert.ElementsMatch(c.t, []string{"default", "kube-node-lease", "kube-public", "kube-system"}, names(namespaces.Items))
	roles, err := c.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=persia"})
	require.NoError(c.t, err)
	assert.Empty(c.t, names(roles.Items), "cluster roles")
}

func names[T any, Object interface {
	*T
	metav1.Object
}](items []T) []string {
	var names []string
	for i := range items {
		names = append(names, Object(&items[i]).GetName())
	}
	return names
}

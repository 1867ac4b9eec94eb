package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"persia/config"
	"persia/gcp"
)

var now = time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)

func event(kind, reason, message string, ago time.Duration) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "persia", Name: reason},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "clicks-nn-worker-0"},
		Type:           kind, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(now.Add(-ago)),
	}
}

func unscheduled(message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}}
}

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}},
	}}
}

// TestExplain has messages of GKE's scheduler, autoscaler, and kubelet.
func TestExplain(t *testing.T) {
	oomKilled := waiting("CrashLoopBackOff", "back-off 5m0s")
	oomKilled.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled"}
	const noGPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
	for name, c := range map[string]struct {
		spec   corev1.PodSpec
		status corev1.PodStatus
		events []corev1.Event
		cause  string
		next   string
	}{
		"quota": {status: unscheduled(noGPU), events: []corev1.Event{
			event("Warning", "FailedScaleUp", "Node scale up in zones us-central1-a associated with this pod failed: GCE quota exceeded.", time.Minute),
		}, cause: "quota", next: "make preflight"},
		"no machines": {status: unscheduled(noGPU), events: []corev1.Event{
			event("Warning", "FailedScaleUp", "Node scale up failed: GCE out of resources. scale.up.error.out.of.resources", time.Minute),
		}, cause: "no machines", next: "gcloud compute instance-groups managed list --filter name~gpu --uri | xargs -n 1 gcloud compute instance-groups managed list-errors"},
		"full pool": {status: unscheduled(noGPU), events: []corev1.Event{
			event("Normal", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", time.Minute),
		}, cause: "pool is full", next: "pulumi config get --path persia:nodePools   # increase maxNodes of gpu, and run pulumi up"},
		"no room": {status: unscheduled(noGPU), cause: "no room", next: "kubectl -n persia describe pod clicks-nn-worker-0"},
		"claim":   {status: unscheduled(`0/3 nodes are available: persistentvolumeclaim "checkpoints-claim" not found.`), cause: "volume", next: "kubectl -n persia get pvc"},
		"evicted, its event": {spec: corev1.PodSpec{NodeName: "a"}, status: waiting("ContainerCreating", ""), events: []corev1.Event{
			event("Warning", "Evicted", "The node was low on resource: ephemeral-storage.", time.Minute),
		}, cause: "evicted", next: "describe pod"},
		"evicted, its pod": {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}, cause: "evicted", next: "describe pod"},
		"mount":            {status: waiting("ContainerCreating", ""), events: []corev1.Event{event("Warning", "FailedMount", "MountVolume.SetUp failed", 0)}, cause: "volume", next: "get pvc"},
		"image":            {status: waiting("ImagePullBackOff", `Back-off pulling image "example.com/a:1"`), cause: "image", next: "describe pod"},
		"memory":           {status: oomKilled, cause: "memory", next: "describe pod"},
		"crash":            {status: waiting("CrashLoopBackOff", "back-off 5m0s"), cause: "error", next: "logs clicks-nn-worker-0 --previous"},
		"queue":            {spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}}, status: unscheduled("gated"), cause: "queue", next: "get workloads"},
		"something else":   {status: unscheduled("a new reason preemption: no help"), cause: "not scheduled", next: "describe pod"},
		"starts":           {spec: corev1.PodSpec{NodeName: "a"}, status: waiting("ContainerCreating", "")},
		"runs":             {status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}},
		"has ended":        {status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
		"an older scale-up": {status: waiting("ImagePullBackOff", `Back-off pulling image "example.com/a:1"`), events: []corev1.Event{
			event("Warning", "FailedScaleUp", "Node scale up failed: GCE quota exceeded.", time.Hour),
		}, cause: "image", next: "describe pod"},
		"a scale-up before a mount": {spec: corev1.PodSpec{NodeName: "a"}, status: waiting("ContainerCreating", ""), events: []corev1.Event{
			event("Warning", "FailedScaleUp", "Node scale up failed: GCE quota exceeded.", time.Hour),
			event("Warning", "FailedMount", "MountVolume.SetUp failed", 2*time.Hour),
		}, cause: "volume", next: "get pvc"},
		"no machines after quota": {status: unscheduled(noGPU), events: []corev1.Event{
			event("Warning", "FailedScaleUp", "Node scale up failed: GCE quota exceeded.", time.Hour),
			event("Warning", "FailedScaleUp", "Node scale up failed: GCE out of resources.  GCE_STOCKOUT", 2*time.Minute),
			event("Warning", "FailedScheduling", noGPU, time.Minute),
		}, cause: "no machines", next: "list-errors"},
		"a claim after quota": {status: unscheduled(`0/3 nodes are available: persistentvolumeclaim "checkpoints-claim" not found.`), events: []corev1.Event{
			event("Warning", "FailedScaleUp", "Node scale up failed: GCE quota exceeded.", time.Hour),
		}, cause: "volume", next: "get pvc"},
		"an older warning": {status: waiting("ErrImagePull", "not found"), events: []corev1.Event{event("Warning", "FailedScheduling", noGPU, time.Hour)}, cause: "image", next: "describe pod"},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.NodeSelector = map[string]string{gcp.LabelNodePool: "gpu"}
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "clicks-nn-worker-0"}, Spec: c.spec, Status: c.status}
			wait, found := explain(pod, c.events)
			assert.Equal(t, c.cause != "", found)
			assert.Equal(t, c.cause, wait.Cause, wait.Says)
			assert.NotContains(t, wait.Says, "preemption")
			assert.Contains(t, wait.Next, c.next)
		})
	}
}

// TestTried: each pool of a compute class that had no machines, with the time and the answer, although equal answers are one event.
func TestTried(t *testing.T) {
	at := func(reason, message string, minute int) corev1.Event {
		return corev1.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "a"},
			LastTimestamp: metav1.Date(2026, 1, 1, 7, minute, 0, 0, time.UTC)}
	}
	const none = "Node scale up in zones a associated with this pod failed: GCE out of resources."
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: unscheduled("0/3 nodes are available: 3 node(s) didn't match")}
	events := []corev1.Event{at("FailedScaleUp", none, 3), at("TriggeredScaleUp", "pod triggered scale-up: [{https://b/instanceGroups/gke-first-grp 0->1}]", 1),
		at("TriggeredScaleUp", "pod triggered scale-up: [{https://b/instanceGroups/gke-second-grp 0->1}]", 3)}
	wait, _ := explain(pod, events)
	assert.Equal(t, []string{"no machines", "FailedScaleUp: " + none}, []string{wait.Cause, wait.Says})
	pod.Spec.NodeSelector = map[string]string{gcp.LabelComputeClass: "persia-first"}
	wait, _ = explain(pod, events)
	assert.Equal(t, "07:01:00 gke-first-grp: "+none+"; 07:03:00 gke-second-grp: "+none, wait.Says)
}

// TestNextIsACommand: what every cause names to do next is a command without placeholders.
func TestNextIsACommand(t *testing.T) {
	for _, row := range said {
		next := waitOf(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "clicks-nn-worker-0"}}, row.name, "", row.next).Next
		assert.Regexp(t, `^(gcloud|kubectl|make|pulumi) `, next, row.name)
		assert.NotRegexp(t, `\b[A-Z]{2,}\b`, next, row.name)
	}
}

// TestRead: two replicas wait for the same, behind a queue and for the nodes of a request, and one
// server of NATS for an image. The job feed has its nodes, two completions during an update, and a dataloader that
// Kubernetes refuses; somebody has deleted the NATS cluster of both, and scaled Kueue down.
func TestRead(t *testing.T) {
	labels := func(job, component string) map[string]string {
		return map[string]string{"persia_job": job, "app.kubernetes.io/name": component}
	}
	replica := func(name string, status corev1.PodStatus) *corev1.Pod {
		return &corev1.Pod{Status: status, ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: name,
			Labels: labels(strings.Split(name, "-")[0], "nn-worker"), Annotations: map[string]string{gcp.AnnotationRequest: "request"}}}
	}
	full := unscheduled("0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.")
	node := func(name, pool, machine, accelerator, gpus string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{gcp.LabelNodePool: pool, gcp.LabelAccelerator: accelerator,
				corev1.LabelInstanceTypeStable: machine, corev1.LabelTopologyRegion: "us-central1"}},
			Status: corev1.NodeStatus{
				Capacity:   corev1.ResourceList{gcp.GPUResource: resource.MustParse(gpus)},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}
	}
	trains := replica("feed-nn-worker-0", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}})
	trains.Spec = corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gcp.GPUResource: resource.MustParse("1")}}}}}
	ended := trains.DeepCopy()
	ended.Name, ended.Status.Phase = "feed-nn-worker-1", corev1.PodSucceeded
	deployment := func(namespace, name string, wanted, ready int32) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "persia"}},
			Spec: appsv1.DeploymentSpec{Replicas: &wanted}, Status: appsv1.DeploymentStatus{ReadyReplicas: ready}}
	}
	lost := node("d", "rest", "x9-unknown-8", "", "0")
	lost.Status.Conditions[0].Status = corev1.ConditionUnknown
	client := fake.NewClientset(
		node("a", "gpu", "n1-standard-8", "nvidia-tesla-t4", "2"), node("b", "gpu", "n1-standard-8", "nvidia-tesla-t4", "2"),
		node("c", "system", "e2-standard-4", "", "0"), lost,
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "clicks", Labels: labels("clicks", "completion"),
			Annotations: config.Contract{Version: 1, NATS: "clicks-nats"}.Annotation()}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "feed", Labels: labels("feed", "completion"),
			Annotations: config.Contract{Version: 1, NATS: "persia-nats-service"}.Annotation()}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "feed-as-it-was", Labels: labels("feed", "completion")}},
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "feed-dataloader", Labels: labels("feed", "dataloader")}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "feed-nn-worker-0", Labels: labels("feed", "nn-worker")},
			Spec: batchv1.JobSpec{Parallelism: new(int32(2))}, Status: batchv1.JobStatus{Active: 1, Succeeded: 1}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "clicks-suspended", Labels: labels("clicks", "dataloader")},
			Spec: batchv1.JobSpec{Suspend: new(true)}},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "a"}, Type: "Warning", Reason: "FailedCreate",
			InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Name: "feed-dataloader"}, Message: "create Pod feed-dataloader-0 failed: exceeded quota: team"},
		deployment("kueue-system", "kueue", 0, 0), deployment("persia", "feed-metrics-gateway", 1, 1),
		replica("clicks-nn-worker-0", full), replica("clicks-nn-worker-1", full),
		trains, ended,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "nats-io", Name: "nats-1", Labels: map[string]string{"app": "nats"}}, Status: waiting("ErrImagePull", "no such tag")},
	)
	custom := func(apiVersion, kind, name string) runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind,
			"metadata": map[string]any{"namespace": "persia", "name": name}, "spec": map[string]any{"queueName": "ads", "priority": int64(1), "active": true},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Accepted", "status": "True", "message": "accepted"}}}}}
	}
	kinds := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{workloads: "WorkloadList", requests: "ProvisioningRequestList", natsClusters: "NatsClusterList"},
		custom("nats.io/v1alpha2", "NatsCluster", "another"),
		custom("kueue.x-k8s.io/v1beta2", "Workload", "clicks"),
		custom("autoscaling.x-k8s.io/v1", "ProvisioningRequest", "clicks"), custom("autoscaling.x-k8s.io/v1", "ProvisioningRequest", "feed"))
	for _, kind := range []schema.GroupVersionResource{workloads, requests, natsClusters} {
		client.Resources = append(client.Resources, &metav1.APIResourceList{GroupVersion: kind.GroupVersion().String()})
	}
	report, err := read(t.Context(), client, kinds, now)
	require.NoError(t, err)
	var out strings.Builder
	report.Print(&out)
	assert.Equal(t, `
NODE POOL  MACHINE        NODES READY  GPUS            USD AN HOUR, LISTED 2025-03-06
gpu        n1-standard-8  2/2          1 feed, 3 free  2.16
rest       x9-unknown-8   0/1                          unknown
system     e2-standard-4  1/1                          0.13
all                                                    2.29 and more

job clicks: 0 of 2 pods are ready
  queue: clicks: in the queue ads: GKE waits until it has all nodes at once: accepted
    next: kubectl -n persia describe workload clicks
  nodes: clicks: GKE waits until it has all nodes at once: accepted
    next: kubectl -n persia describe provisioningrequest clicks
  no room: clicks-nn-worker-0 and 1 more: 0/3 nodes are available: 3 Insufficient cpu.
    next: kubectl -n persia describe pod clicks-nn-worker-0

job feed: 2 of 3 pods are ready
  refused: feed-dataloader: create Pod feed-dataloader-0 failed: exceeded quota: team
    next: kubectl -n persia describe statefulset feed-dataloader

NATS
  deleted: clicks-nats: the NatsCluster is not there
    next: pulumi up --refresh
  deleted: persia-nats-service: the NatsCluster is not there
    next: pulumi up --refresh
  image: nats-1: ErrImagePull: no such tag
    next: kubectl -n nats-io describe pod nats-1

CONTROLLERS
  controller: kueue: 0 of 1 pods are ready, and what it works for waits
    next: kubectl -n kueue-system describe deployment kueue
`, out.String())
}

// TestWatch shows what it can until it is interrupted: a look that fails may succeed later.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 12*time.Second)
		defer stop()
		looks, out := 0, strings.Builder{}
		Watch(ctx, &out, func(out io.Writer) error {
			looks++
			if looks == 2 {
				return errors.New("no answer")
			}
			_, err := fmt.Fprintf(out, "look %d\n", looks)
			return err
		})
		assert.Equal(t, "look 1\nno answer\nlook 3\n", out.String(), "it clears only terminals")
	})
}

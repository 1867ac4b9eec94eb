package status

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"persia/gcp"
)

// Wait is a reason that pods do not run.
type Wait struct {
	// Cause is a short name for people, like quota.
	Cause string `json:"cause"`
	// Says is the message in the cluster.
	Says string `json:"says"`
	// Next is a command that shows more or helps.
	Next string `json:"next"`
	// Pod is one of the pods, and More is the number of others.
	Pod  string `json:"pod"`
	More int    `json:"more"`
}

const (
	describe = "kubectl -n NAMESPACE describe pod POD"
	// noRoom is a cause that says only that no node fits.
	noRoom = "no room"
)

type cause struct {
	name, next string
	words      []string
}

// said are causes by what an event, a condition, or a container's state says. The first row that matches a text counts,
// so what is specific comes first. NAMESPACE, POD, and POOL, the pod's node pool, are placeholders in the commands.
var said = []cause{
	{"quota", "make preflight", []string{"quota", "Quota", "QUOTA_EXCEEDED"}},
	// A pool has a group in each zone, whose URI includes the zone.
	{"no machines", "gcloud compute instance-groups managed list --filter name~POOL --uri | " +
		"xargs -n 1 gcloud compute instance-groups managed list-errors",
		[]string{"out of resources", "out.of.resources", "ZONE_RESOURCE_POOL_EXHAUSTED", "GCE_STOCKOUT", "does not have enough resources"}},
	{"no addresses", "pulumi preview   # lists the address ranges", []string{"IP_SPACE_EXHAUSTED", "ip.space.exhausted"}},
	{"pool is full", "pulumi config get --path persia:nodePools   # increase maxNodes of POOL, and run pulumi up",
		[]string{"max node group size reached"}},
	{"evicted", describe, []string{"Evicted: "}},
	{"volume", "kubectl -n NAMESPACE get pvc",
		[]string{"PersistentVolumeClaim", "persistentvolumeclaim", "FailedMount", "FailedAttachVolume", "Multi-Attach"}},
	{"image", describe, []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}},
	{"memory", describe, []string{"OOMKilled"}},
	{"error", "kubectl -n NAMESPACE logs POD --previous --tail 30",
		[]string{"CrashLoopBackOff", "CreateContainerError", "CreateContainerConfigError", "RunContainerError"}},
	{noRoom, describe, []string{"Insufficient ", "didn't match Pod's node affinity", "untolerated taint", "no nodes available", "node(s)"}},
}

// explain returns why a pod is not ready, or false if it is ready, has ended, or only starts.
func explain(pod corev1.Pod, events []corev1.Event) (Wait, bool) {
	if pod.Status.Phase == corev1.PodSucceeded || Ready(pod) {
		return Wait{}, false
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		return waitOf(pod, "queue", "the queue has not admitted the job", "kubectl -n NAMESPACE get workloads"), true
	}
	// Containers and conditions say what is true now, and events what happened, the newest first. A pod without a node
	// always says that there is no room, so an event that tells why counts more.
	room := Wait{}
	texts := append(stateTexts(pod), eventTexts(pod, events)...)
	for i, text := range texts {
		// What follows is about pods that could make room.
		text, _, _ = strings.Cut(text, " preemption: ")
		texts[i] = text
		row := slices.IndexFunc(said, func(row cause) bool {
			return slices.ContainsFunc(row.words, func(word string) bool { return strings.Contains(text, word) })
		})
		if row < 0 {
			continue
		}
		if strings.HasPrefix(text, "FailedScaleUp: ") {
			text = cmp.Or(tried(pod, events), text)
		}
		wait := waitOf(pod, said[row].name, text, said[row].next)
		if wait.Cause != noRoom {
			return wait, true
		}
		room = cmp.Or(room, wait)
	}
	if room.Cause == "" && pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName == "" {
		return waitOf(pod, "not scheduled", strings.Join(texts, "; "), describe), true
	}
	return room, room.Cause != ""
}

func waitOf(pod corev1.Pod, cause, says, next string) Wait {
	// The groups of all pools begin with gke.
	pool := cmp.Or(pod.Spec.NodeSelector[gcp.LabelNodePool], "gke")
	next = strings.NewReplacer("NAMESPACE", pod.Namespace, "POD", pod.Name, "POOL", pool).Replace(next)
	return Wait{Cause: cause, Says: strings.Join(strings.Fields(says), " "), Next: next, Pod: pod.Name}
}

// instanceGroup matches the machines of a pool in a zone, gke-CLUSTER-POOL-HASH-grp, in what the autoscaler says.
var instanceGroup = regexp.MustCompile(`instanceGroups/([^ }]+)`)

// tried says with which answer, and when, GKE has last tried each pool of the compute class of a pod, or "". Equal events are one,
// with the time of the last.
func tried(pod corev1.Pod, events []corev1.Event) string {
	var answers []string
	events = slices.DeleteFunc(newestFirst(events), func(event corev1.Event) bool { return event.InvolvedObject.Name != pod.Name })
	slices.Reverse(events)
	for _, event := range events {
		failed := slices.IndexFunc(events, func(answer corev1.Event) bool {
			return answer.Reason == "FailedScaleUp" && !eventTime(answer).Before(eventTime(event))
		})
		if event.Reason != "TriggeredScaleUp" || failed < 0 || pod.Spec.NodeSelector[gcp.LabelComputeClass] == "" {
			continue
		}
		for _, group := range instanceGroup.FindAllStringSubmatch(event.Message, -1) {
			answers = append(answers, fmt.Sprintf("%s %s: %s", eventTime(event).UTC().Format(time.TimeOnly), group[1], events[failed].Message))
		}
	}
	slices.Sort(answers)
	return strings.Join(slices.Compact(answers), "; ")
}

// scheduling are the reasons of events that are over when a pod has a node.
var scheduling = []string{"FailedScheduling", "FailedScaleUp", "NotTriggerScaleUp"}

// eventTexts returns the warnings of a pod and what its autoscaler says, the newest first.
func eventTexts(pod corev1.Pod, events []corev1.Event) []string {
	var texts []string
	for _, event := range newestFirst(events) {
		of := event.InvolvedObject
		switch {
		case of.Kind != "Pod" || of.Name != pod.Name:
		case pod.Spec.NodeName != "" && slices.Contains(scheduling, event.Reason):
		case event.Type == corev1.EventTypeWarning || event.Reason == "NotTriggerScaleUp":
			texts = append(texts, event.Reason+": "+event.Message)
		}
	}
	return texts
}

func newestFirst(events []corev1.Event) []corev1.Event {
	return slices.SortedStableFunc(slices.Values(events), func(a, b corev1.Event) int { return eventTime(b).Compare(eventTime(a)) })
}

func eventTime(event corev1.Event) time.Time {
	return cmp.Or(event.LastTimestamp.Time, event.EventTime.Time, event.CreationTimestamp.Time)
}

// stateTexts returns the messages of a pod's containers, and why it is not scheduled.
func stateTexts(pod corev1.Pod) []string {
	var texts []string
	if pod.Status.Reason != "" {
		texts = append(texts, pod.Status.Reason+": "+pod.Status.Message)
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if end := container.LastTerminationState.Terminated; end != nil && end.Reason == "OOMKilled" {
			texts = append(texts, "OOMKilled: "+container.Name)
		}
		if waiting := container.State.Waiting; waiting != nil {
			texts = append(texts, strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": "))
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			texts = append(texts, condition.Message)
		}
	}
	return texts
}

// Ready reports whether a pod is ready.
func Ready(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// owner is an object that makes pods.
type owner struct {
	metav1.ObjectMeta
	kind string
	// wanted is how many pods it is to have, and there how many it has.
	wanted, there int32
}

// ownersOf returns what makes the pods of roles.
func ownersOf(sets []appsv1.StatefulSet, jobs []batchv1.Job) []owner {
	var owners []owner
	for _, set := range sets {
		owners = append(owners, owner{set.ObjectMeta, "StatefulSet", ptr.Deref(set.Spec.Replicas, 1), set.Status.Replicas})
	}
	for _, job := range jobs {
		if !isCompletion(job) && !ptr.Deref(job.Spec.Suspend, false) {
			owners = append(owners, owner{job.ObjectMeta, "Job", ptr.Deref(job.Spec.Parallelism, 1) - job.Status.Succeeded, job.Status.Active})
		}
	}
	return owners
}

// explain returns why pods of an owner are not there.
func (o owner) explain(events []corev1.Event) Wait {
	wait := Wait{
		Cause: "refused", Pod: o.Name, Says: fmt.Sprintf("%d of %d pods are there", o.there, o.wanted),
		Next: fmt.Sprintf("kubectl -n %s describe %s %s", o.Namespace, strings.ToLower(o.kind), o.Name),
	}
	var last corev1.Event
	for _, event := range events {
		of := event.InvolvedObject
		if event.Reason == "FailedCreate" && of.Kind == o.kind && of.Name == o.Name && !eventTime(event).Before(eventTime(last)) {
			last = event
			wait.Says = event.Message
		}
	}
	return wait
}

// idle returns the controllers, operators, and gateways of stacks that do not run.
func idle(deployments []appsv1.Deployment) []Wait {
	var waits []Wait
	for _, d := range deployments {
		// No stack wants none: a person has scaled it down.
		if wanted := max(1, ptr.Deref(d.Spec.Replicas, 1)); d.Status.ReadyReplicas < wanted {
			waits = append(waits, Wait{
				Cause: "controller", Pod: d.Name,
				Says: fmt.Sprintf("%d of %d pods are ready, and what it works for waits", d.Status.ReadyReplicas, wanted),
				Next: fmt.Sprintf("kubectl -n %s describe deployment %s", d.Namespace, d.Name),
			})
		}
	}
	return waits
}

package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"persia/config"
	"persia/gcp"
	"persia/internal/status"
	"persia/stack/effects"
	"persia/workload/pedl"
)

// snapshot describes a cluster at one moment.
type snapshot struct {
	// objects are the UIDs of pods by workload, as in [effects.Effect], of nodes by "pool NAME", and of claims by "claim NAME".
	// A pod whose containers have restarted counts as another one.
	objects map[string]map[types.UID]bool
	// unready are the pods that are neither ready nor at their end.
	unready []string
}

func look(ctx context.Context, client kubernetes.Interface) (snapshot, error) {
	s, of, all := snapshot{objects: map[string]map[types.UID]bool{}}, client.CoreV1(), metav1.ListOptions{}
	add := func(name string, uid types.UID) {
		if s.objects[name] == nil {
			s.objects[name] = map[types.UID]bool{}
		}
		s.objects[name][uid] = true
	}
	pods, podsErr := of.Pods("").List(ctx, all)
	nodes, nodesErr := of.Nodes().List(ctx, all)
	claims, claimsErr := of.PersistentVolumeClaims("").List(ctx, all)
	if err := errors.Join(podsErr, nodesErr, claimsErr); err != nil {
		return s, err
	}
	for _, pod := range pods.Items {
		restarts := 0
		for _, container := range pod.Status.ContainerStatuses {
			restarts += int(container.RestartCount)
		}
		if workload := workloadOf(pod); workload != "" {
			add(workload, types.UID(fmt.Sprintf("%s, restarted %d times", pod.UID, restarts)))
		}
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !over && (!status.Ready(pod) || pod.DeletionTimestamp != nil) {
			s.unready = append(s.unready, pod.Name)
		}
	}
	for _, node := range nodes.Items {
		add("pool "+node.Labels[gcp.LabelNodePool], node.UID)
	}
	for _, claim := range claims.Items {
		add("claim "+claim.Name, claim.UID)
	}
	return s, nil
}

// workloadOf returns the workload of a pod whose end costs a training or PEDL something, or "".
func workloadOf(pod corev1.Pod) string {
	job, role := pod.Labels[config.JobLabel], pod.Labels["app.kubernetes.io/name"]
	for _, kind := range config.Kinds() {
		// PERSIA's operator gives a pod no label of its role.
		if job != "" && (role == kind.Name || role == "" && strings.HasPrefix(pod.Name, job+"-"+kind.Name)) {
			return job + "-" + kind.Name
		}
	}
	owner := metav1.GetControllerOf(&pod)
	if owner != nil && (pod.Namespace == pedl.NamespaceName || pod.Namespace == pedl.AgentNamespaceName) {
		return strings.TrimSuffix(owner.Name, "-"+pod.Labels["pod-template-hash"])
	}
	return pod.Labels["nats_cluster"]
}

func (s snapshot) equal(other snapshot) bool { return reflect.DeepEqual(s, other) }

// lost returns how many objects are gone.
func (s snapshot) lost(name string, now snapshot) (gone int) {
	for uid := range s.objects[name] {
		if !now.objects[name][uid] {
			gone++
		}
	}
	return gone
}

// keeps reports whether something has kept all of its pods that some effects end.
func (s snapshot) keeps(now snapshot, announced []effects.Effect) bool {
	return slices.ContainsFunc(announced, func(effect effects.Effect) bool {
		return slices.ContainsFunc(effect.Ends, func(name string) bool { return len(s.objects[name]) > 0 && s.lost(name, now) == 0 })
	})
}

// wants returns the workloads that have fewer pods than their jobs have replicas. A queue may hold its jobs back.
func (s snapshot) wants(cfg *config.Stack) (few []string) {
	for _, job := range cfg.Jobs {
		for _, role := range job.Roles() {
			waits := job.Suspend || job.Queue != "" || job.Engine == config.EngineOperator // which the sandbox does not have
			if name := job.Name + "-" + role.Name; !waits && len(s.objects[name]) < role.Replicas {
				few = append(few, name)
			}
		}
	}
	return few
}

// compare compares what a preview has announced with what has ended. GKE scales pools with autoscaling as it likes.
func (s *Summary) compare(before, after snapshot, announced []effects.Effect, claims []string, cfg *config.Stack) {
	ends, may := map[string]bool{}, map[string]bool{}
	for _, effect := range announced {
		for _, name := range effect.Ends {
			ends[name] = true
		}
		for _, name := range effect.Risks {
			may[name] = true
		}
	}
	for _, name := range claims {
		ends["claim "+name] = true
	}
	for _, pool := range cfg.Pools() {
		if pool.Autoscaling != nil {
			may["pool "+pool.Name] = true
		}
	}
	for _, job := range cfg.Jobs {
		for _, role := range job.Roles() {
			if job.Queue != "" { // in which a job of a higher priority may take its place
				may[job.Name+"-"+role.Name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.objects)) {
		gone := before.lost(name, after)
		lost := fmt.Sprintf("%s: %d of %d ended", name, gone, len(before.objects[name]))
		if gone > 0 {
			s.ended = append(s.ended, lost)
			for _, kind := range config.Kinds() {
				if job, of := strings.CutSuffix(name, "-"+kind.Name); of && !slices.Contains(s.attempts, job) {
					s.attempts = append(s.attempts, job)
				}
			}
		} else {
			s.kept++
		}
		if gone > 0 && !ends[name] && !may[name] {
			s.problem("%s, which the preview did not announce", lost)
		} else if gone == 0 && ends[name] {
			s.problem("%s, but the preview announced that some end", lost)
		}
	}
}

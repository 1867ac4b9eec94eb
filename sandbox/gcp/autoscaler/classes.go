package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"persia/gcp"
	"persia/sandbox/gcp/gke"
)

// computeClasses are GKE's.
var computeClasses = schema.GroupVersionResource{Group: "cloud.google.com", Version: "v1", Resource: "computeclasses"}

// backOff is how long the autoscaler asks a pool for no machines after it has got none. GKE waits five minutes, and longer
// each time, up to half an hour (kubernetes/autoscaler, initial-node-group-backoff-duration).
const backOff = 5 * time.Second

// readClasses returns the names of the pools of each compute class, best first.
func (a *autoscaler) readClasses(ctx context.Context) (map[string][]string, error) {
	list, err := a.classes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	classes := map[string][]string{}
	for _, class := range list.Items {
		priorities, _, err := unstructured.NestedSlice(class.Object, "spec", "priorities")
		if err != nil {
			return nil, err
		}
		for _, priority := range priorities {
			pools, _, err := unstructured.NestedStringSlice(priority.(map[string]any), "nodepools")
			if err != nil {
				return nil, err
			}
			classes[class.GetName()] = append(classes[class.GetName()], pools...)
		}
	}
	return classes, nil
}

// failure is a pod for which a pool with a number of nodes got no machine for another one.
type failure struct {
	pod   *corev1.Pod
	pool  gke.Pool
	nodes int
	node  *corev1.Node
}

// poolsFor returns the pools that a pod may get a node of, best first.
func (p *plan) poolsFor(d demand) []gke.Pool {
	class, chosen := d.pod.Spec.NodeSelector[gcp.LabelComputeClass]
	if !chosen {
		return p.pools
	}
	var pools []gke.Pool
	for _, name := range p.classes[class] {
		if i := slices.IndexFunc(p.pools, func(pool gke.Pool) bool { return pool.Name() == name }); i >= 0 {
			pools = append(pools, p.pools[i])
		}
	}
	return pools
}

// tell writes the events with which GKE says that Compute Engine has no machines for pods.
func (a *autoscaler) tell(ctx context.Context, failed []failure) error {
	var errs []error
	for _, f := range failed {
		zone, group := f.node.Labels[gcp.LabelZone], f.node.Name[:strings.LastIndex(f.node.Name, "-")]
		now := time.Now()
		for i, said := range []struct{ kind, reason, message string }{
			{corev1.EventTypeNormal, "TriggeredScaleUp", fmt.Sprintf("pod triggered scale-up: [{https://www.googleapis.com/compute/v1/"+
				"projects/my-project/zones/%s/instanceGroups/%s-grp %d->%d (max: %d)}]", zone, group, f.nodes, f.nodes+1, f.pool.Max())},
			{corev1.EventTypeWarning, "FailedScaleUp", "Node scale up in zones " + zone +
				" associated with this pod failed: GCE out of resources. Pod is at risk of not being scheduled."},
		} {
			_, err := a.client.CoreV1().Events(f.pod.Namespace).Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{GenerateName: f.pod.Name + ".", Namespace: f.pod.Namespace},
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: f.pod.Namespace, Name: f.pod.Name, UID: f.pod.UID},
				Type:           said.kind, Reason: said.reason, Message: said.message,
				Source:         corev1.EventSource{Component: "cluster-autoscaler"},
				FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now.Add(time.Duration(i) * time.Second)), Count: 1,
			}, metav1.CreateOptions{})
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

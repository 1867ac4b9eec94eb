package autoscaler

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

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
func (a *autoscaler) tell(failed []failure) {
	for _, f := range failed {
		zone, group := f.node.Labels[gcp.LabelZone], f.node.Name[:strings.LastIndex(f.node.Name, "-")]
		a.events.Eventf(f.pod, corev1.EventTypeNormal, "TriggeredScaleUp", "pod triggered scale-up: [{https://www.googleapis.com/compute/v1/"+
			"projects/my-project/zones/%s/instanceGroups/%s-grp %d->%d (max: %d)}]", zone, group, f.nodes, f.nodes+1, f.pool.Max())
		a.events.Eventf(f.pod, corev1.EventTypeWarning, "FailedScaleUp", "Node scale up in zones %s associated with this pod failed: "+
			"GCE out of resources. Pod is at risk of not being scheduled.", zone)
	}
}

// newRecorder returns a recorder of events as the autoscaler has one, which makes equal events one. The sandbox tries again more
// often, so it forgets none.
func newRecorder(ctx context.Context, client kubernetes.Interface) record.EventRecorder {
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{BurstSize: 10000, QPS: 100})
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "cluster-autoscaler"})
}

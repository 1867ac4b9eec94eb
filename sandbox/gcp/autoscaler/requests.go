package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	requestsv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"

	"persia/gcp"
	"persia/sandbox/gcp/gke"
)

// booking is how long the nodes of a request wait for its pods. GKE gives them ten minutes.
const booking = 10 * time.Second

// settling is how long the nodes of a request take pods before the request says that they are there. What GKE
// says first was not seen, so a program must work either way.
const settling = 3 * time.Second

// detailNodes lists, in the details of a provisioned request, the nodes that came for it.
const detailNodes = "Nodes"

// request is a ProvisioningRequest of GKE's class.
type request struct {
	*requestsv1.ProvisioningRequest
}

func (r request) is(condition string) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, condition)
}

func (r request) nodes() []string {
	return strings.Split(string(r.Status.ProvisioningClassDetails[detailNodes]), ",")
}

func (r request) set(condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: r.Generation,
	})
}

// listRequests returns the requests of GKE's class, the oldest first.
func (a *autoscaler) listRequests(ctx context.Context) ([]request, error) {
	list, err := a.requests.ProvisioningRequests(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var requests []request
	for i, r := range list.Items {
		if r.Spec.ProvisioningClassName == gcp.ClassQueued {
			requests = append(requests, request{&list.Items[i]})
		}
	}
	slices.SortStableFunc(requests, func(a, b request) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return requests, nil
}

// answerRequests answers each request, and returns the names of the nodes that wait for the pods of one.
func (a *autoscaler) answerRequests(ctx context.Context, plan *plan, now time.Time) (map[string]bool, error) {
	if !slices.ContainsFunc(plan.pools, gke.Pool.Queued) {
		return nil, nil
	}
	requests, err := a.listRequests(ctx)
	if err != nil {
		return nil, err
	}
	booked := map[string]bool{}
	var errs []error
	for _, r := range requests {
		errs = append(errs, a.answer(ctx, plan, r, now))
		if !r.is(requestsv1.BookingExpired) {
			for _, node := range r.nodes() {
				booked[node] = true
			}
		}
	}
	return booked, errors.Join(errs...)
}

// answer takes a request one step further.
func (a *autoscaler) answer(ctx context.Context, plan *plan, r request, now time.Time) error {
	switch {
	case r.is(requestsv1.Failed):
		return nil
	case r.is(requestsv1.Provisioned):
		provisioned := meta.FindStatusCondition(r.Status.Conditions, requestsv1.Provisioned)
		if r.is(requestsv1.BookingExpired) || now.Sub(provisioned.LastTransitionTime.Time) < booking {
			return nil
		}
		r.set(requestsv1.BookingExpired, metav1.ConditionTrue, "BookingExpired", "Capacity booking has expired.")
		return a.writeStatus(ctx, r)
	case !r.is(requestsv1.Accepted):
		r.set(requestsv1.Accepted, metav1.ConditionTrue, "Accepted", "Provisioning Request was accepted.")
		r.set(requestsv1.Provisioned, metav1.ConditionFalse, "NotProvisioned", "Provisioning Request is waiting for resources.")
		return a.writeStatus(ctx, r)
	}
	if nodes := r.nodes(); nodes[0] != "" {
		if plan.hasYounger(nodes, now.Add(-settling)) {
			return nil
		}
		r.set(requestsv1.Provisioned, metav1.ConditionTrue, "Provisioned", "Provisioning Request was successfully provisioned.")
		return a.writeStatus(ctx, r)
	}
	template, err := a.client.CoreV1().PodTemplates(r.Namespace).Get(ctx, r.Spec.PodSets[0].PodTemplateRef.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return a.fail(ctx, r, err.Error())
	}
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: template.Template.ObjectMeta, Spec: template.Template.Spec}
	pod.Namespace = r.Namespace
	pool, found := plan.queuedPool(newDemand(pod))
	if !found {
		return a.fail(ctx, r, "no node pool with queued provisioning has nodes for the pods")
	}
	if refusal := plan.stocks[pool.Name()].Refusal; refusal != "" {
		return a.fail(ctx, r, refusal)
	}
	count := int(r.Spec.PodSets[0].Count)
	if len(plan.newNodesFor(pool, nil, newDemand(pod), count)) > pool.Max() {
		return a.fail(ctx, r, fmt.Sprintf("the pods need more nodes than node pool %s may have, which is %d", pool.Name(), pool.Max()))
	}
	nodes := plan.newNodesFor(pool, plan.nodesOf(pool, false), newDemand(pod), count)
	if len(nodes)+len(plan.nodesOf(pool, false)) > plan.limit(pool) {
		return nil
	}
	return a.provision(ctx, plan, r, pool, nodes)
}

func (a *autoscaler) fail(ctx context.Context, r request, message string) error {
	r.set(requestsv1.Failed, metav1.ConditionTrue, "Failed", message)
	return a.writeStatus(ctx, r)
}

// provision creates all nodes of a request.
func (a *autoscaler) provision(ctx context.Context, plan *plan, r request, pool gke.Pool, nodes []*corev1.Node) error {
	var names []string
	for _, node := range nodes {
		if plan.stocks[pool.Name()].Broken {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
				Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule,
			})
		}
		names = append(names, node.Name)
		plan.rooms = append(plan.rooms, plan.newRoom(node, nil))
	}
	if err := a.grow(ctx, pool, nodes); err != nil {
		return err
	}
	r.Status.ProvisioningClassDetails = map[string]requestsv1.Detail{"NodePoolName": requestsv1.Detail(pool.Name()),
		detailNodes: requestsv1.Detail(strings.Join(names, ","))}
	return a.writeStatus(ctx, r)
}

// hasYounger reports whether one of some nodes was created after a time.
func (p *plan) hasYounger(nodes []string, than time.Time) bool {
	return slices.ContainsFunc(p.rooms, func(r *room) bool {
		return slices.Contains(nodes, r.node.Name) && r.node.CreationTimestamp.After(than)
	})
}

func (a *autoscaler) writeStatus(ctx context.Context, r request) error {
	a.logger.Info("autoscaler: request answered", "request", r.Name, "conditions", r.Status.Conditions)
	_, err := a.requests.ProvisioningRequests(r.Namespace).UpdateStatus(ctx, r.ProvisioningRequest, metav1.UpdateOptions{})
	return utilerrors.FilterOut(err, apierrors.IsNotFound)
}

// queuedPool returns the first pool with queued provisioning whose nodes hold a pod.
func (p *plan) queuedPool(d demand) (gke.Pool, bool) {
	for _, pool := range p.pools {
		fits := func(node *corev1.Node) bool { return p.newRoom(node, nil).fits(d) }
		if pool.Queued() && slices.ContainsFunc(pool.Next(nil), fits) {
			return pool, true
		}
	}
	return gke.Pool{}, false
}

// newNodesFor returns the new nodes that a pool gets for a number of pods. No pod of a request goes to an older node.
func (p *plan) newNodesFor(pool gke.Pool, has []*corev1.Node, d demand, count int) []*corev1.Node {
	var nodes []*corev1.Node
	var rooms []*room
	for range count {
		at := slices.IndexFunc(rooms, func(r *room) bool { return r.fits(d) })
		if at < 0 {
			at = len(rooms)
			node := pool.Next(slices.Concat(has, nodes))[0]
			nodes, rooms = append(nodes, node), append(rooms, p.newRoom(node, nil))
		}
		rooms[at].take(d)
	}
	return nodes
}

package gke

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"persia/sandbox/gcp/google"
	"persia/sandbox/node"
)

const (
	// realNodeTimeout is how long a real node may take until it is ready, with large images to unpack.
	realNodeTimeout = 10 * time.Minute
	realNodePoll    = 500 * time.Millisecond
)

// makeReal makes a real kubelet run the pool's node instead of kwok. The kubelet reports the node's capacity.
func (p Pool) makeReal() error {
	if p.Autoscaled() || p.perZone()*len(p.zones) != 1 {
		return fmt.Errorf("node pool %s: a real pool has one node: set nodes to 1, in one zone, without autoscaling", p.Name())
	}
	p.template.Annotations = map[string]string{node.Annotation: "real"}
	p.template.Status = corev1.NodeStatus{}
	return nil
}

// awaitReal waits until the pool's node is ready. The API server may fail to answer meanwhile.
func awaitReal(ctx context.Context, client kubernetes.Interface, path string, progress func(string)) error {
	progress("the real node starts")
	started, last := time.Now(), ""
	err := wait.PollUntilContextTimeout(ctx, realNodePoll, realNodeTimeout, true, func(ctx context.Context) (bool, error) {
		nodes, err := listNodes(ctx, client, path)
		switch {
		case err == nil:
			last = unready(nodes)
		case ctx.Err() == nil:
			last = err.Error()
		}
		return err == nil && last == "", nil
	})
	if err != nil {
		return fmt.Errorf("the real node of pool %s is not ready after %s: %s; "+
			"node/node.log in the stack's folder of the sandbox, and the logs in node/NODE/root/var/log, say more: %w",
			google.Segment(path), time.Since(started).Round(time.Second), last, err)
	}
	return nil
}

// unready returns why pods cannot run on one of the nodes, or "".
func unready(nodes map[string]corev1.Node) string {
	for name, node := range nodes {
		i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		keepsOff := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		switch {
		case i < 0:
			return name + ": it has not reported yet"
		case node.Status.Conditions[i].Status != corev1.ConditionTrue || node.Spec.Unschedulable || keepsOff:
			return name + ": " + node.Status.Conditions[i].Message
		}
		return ""
	}
	return "none has reported yet"
}

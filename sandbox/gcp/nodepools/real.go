package nodepools

import (
	"context"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"persia/sandbox/gcp/property"
	"persia/sandbox/node"
)

const (
	// realNodeTimeout is how long a real node may take until it is ready, with large
	// images to unpack.
	realNodeTimeout = 10 * time.Minute
	realNodePoll    = 500 * time.Millisecond
)

// isReal reports whether the pool's nodes are real.
func (g *Nodes) isReal(inputs resource.PropertyMap) bool {
	return g.Real != "" && property.Text(inputs, "name") == g.Real
}

// makeReal makes a real kubelet run the pool's node instead of kwok. The kubelet reports the node's
// capacity.
func (p nodePool) makeReal() error {
	if count, fixed := property.Number(p.inputs, "nodeCount"); !fixed || int(count)*len(p.zones) != 1 {
		return fmt.Errorf("node pool %s: a real pool has one node: set nodes to 1, in one zone, without autoscaling", property.Text(p.inputs, "name"))
	}
	p.template.Annotations = map[string]string{node.Annotation: "real"}
	p.template.Status = corev1.NodeStatus{}
	return nil
}

// awaitReal waits until the pool's nodes are ready. The API server may fail to answer
// meanwhile.
func awaitReal(ctx context.Context, client kubernetes.Interface, inputs resource.PropertyMap, progress func(string)) error {
	progress("the real node starts")
	started, last := time.Now(), ""
	err := wait.PollUntilContextTimeout(ctx, realNodePoll, realNodeTimeout, true, func(ctx context.Context) (bool, error) {
		nodes, err := listNodes(ctx, client, inputs)
		switch {
		case err == nil:
			var ready bool
			ready, last = readiness(nodes)
			return ready, nil
		case ctx.Err() == nil:
			last = err.Error()
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the real node of pool %s is not ready after %s: %s; node/node.log in the stack's folder of the sandbox, and the logs in node/NODE/root/var/log, say more: %w",
			property.Text(inputs, "name"), time.Since(started).Round(time.Second), last, err)
	}
	return nil
}

// readiness reports whether one of the nodes is ready, and returns their conditions otherwise.
func readiness(nodes map[string]corev1.Node) (ready bool, message string) {
	if len(nodes) == 0 {
		return false, "none has reported yet"
	}
	for name, node := range nodes {
		if ready, message := isReady(node); !ready {
			return false, name + ": " + message
		}
	}
	return true, ""
}

// isReady reports whether pods can run on a node, or what the node says.
func isReady(node corev1.Node) (ready bool, message string) {
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		return condition.Status == corev1.ConditionTrue && !node.Spec.Unschedulable && !notReady(node), condition.Message
	}
	return false, "it has not reported yet"
}

// notReady reports whether Kubernetes still keeps pods off the node.
func notReady(node corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return true
		}
	}
	return false
}

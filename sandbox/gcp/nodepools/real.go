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

// isReal tells whether the pool's node is a real one.
func (g *Nodes) isReal(inputs resource.PropertyMap) bool {
	return g.Real != "" && property.Text(inputs, "name") == g.Real
}

// makeReal has a real kubelet play the pool's node, and not kwok. The kubelet reports
// what the node holds.
func (p nodePool) makeReal() error {
	count, fixed := property.Number(p.inputs, "nodeCount")
	if nodes := count * len(p.zones); !fixed || nodes != 1 {
		return fmt.Errorf("node pool %s: a real pool has one node, in one zone, and this one has nodes: %d, in %d zones: set nodes: 1 without autoscaling",
			property.Text(p.inputs, "name"), count, len(p.zones))
	}
	p.template.Annotations = map[string]string{node.Annotation: "real"}
	p.template.Status = corev1.NodeStatus{}
	return nil
}

// awaitReal waits until the pool's node is ready. The API server may fail to answer
// meanwhile.
func awaitReal(ctx context.Context, client kubernetes.Interface, inputs resource.PropertyMap, progress func(string)) error {
	progress("a real node starts")
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
		return fmt.Errorf("the real node of pool %s is not ready after %s: %s; node/node.log in the stack's folder of the sandbox, and the logs in node/root/var/log, say more: %w",
			property.Text(inputs, "name"), time.Since(started).Round(time.Second), last, err)
	}
	return nil
}

// readiness tells whether one of the nodes is ready, or what they say of it.
func readiness(nodes map[string]corev1.Node) (ready bool, message string) {
	message = "it has not reported yet"
	for _, node := range nodes {
		for _, condition := range node.Status.Conditions {
			if condition.Type != corev1.NodeReady {
				continue
			}
			if condition.Status == corev1.ConditionTrue && !node.Spec.Unschedulable && !notReady(node) {
				return true, ""
			}
			message = condition.Message
		}
	}
	return false, message
}

// notReady tells whether Kubernetes keeps pods from the node still.
func notReady(node corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return true
		}
	}
	return false
}

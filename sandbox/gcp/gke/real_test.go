package gke

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"persia/gcp"
	"persia/internal/testkit"
	"persia/sandbox/gcp/google"
	"persia/sandbox/node"
)

func TestARealPoolHasOneNode(t *testing.T) {
	const oneNode = "node pool train: a real pool has one node: set nodes to 1, in one zone, without autoscaling"
	for name, test := range map[string]struct {
		count float64
		body  google.Body
		err   string
	}{
		"one":        {count: 1},
		"two":        {count: 2, err: oneNode},
		"two zones":  {count: 1, body: google.Body{"locations": []any{"us-central1-a", "us-central1-c"}}, err: oneNode},
		"autoscaled": {count: 1, body: google.Body{"autoscaling": google.Body{"totalMaxNodeCount": 1.0}}, err: oneNode},
	} {
		t.Run(name, func(t *testing.T) {
			body := google.Body{
				"locations": []any{"us-central1-c"}, "nodeCount": test.count,
				"config": google.Body{
					"machineType": "n2-standard-4",
					"taints":      []any{google.Body{"key": "team", "value": "a", "effect": "NO_SCHEDULE"}},
				},
			}
			maps.Copy(body, test.body)
			p := testkit.Must(NewPool("projects/p/locations/us-central1/clusters/persia/nodePools/train", body, nil))(t)
			err := p.makeReal()
			if test.err != "" {
				assert.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			made := p.Next(nil)[0]
			assert.Equal(t, map[string]string{node.Annotation: "real"}, made.Annotations, "kwok leaves it alone")
			assert.Empty(t, made.Status.Allocatable, "the kubelet's to say")
			assert.Equal(t, "train", made.Labels[gcp.LabelNodePool])
			assert.Len(t, made.Spec.Taints, 1)
		})
	}
}

// TestARealNodeIsAwaited: a failed request does not end the wait; the error of one that ends contains it.
func TestARealNodeIsAwaited(t *testing.T) {
	const path = "projects/p/locations/us-central1/clusters/persia/nodePools/train"
	condition := func(status corev1.ConditionStatus, message string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{clusterLabel: "persia", gcp.LabelNodePool: "train"}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Message: message}}},
		}
	}
	for name, c := range map[string]struct {
		node *corev1.Node
		// answers is how many answers the wait takes; all but the last are errors.
		answers int
		failing bool
		err     string
	}{
		"ready after a failure":     {node: condition(corev1.ConditionTrue, ""), answers: 2},
		"not ready after a failure": {node: condition(corev1.ConditionFalse, "no network"), answers: 2, err: "train is not ready after 1s: node: no network; "},
		"never answered":            {node: condition(corev1.ConditionTrue, ""), answers: 1, failing: true, err: "train is not ready after 0s: connection refused; "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				client, lists := fake.NewClientset(c.node), 0
				client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
					lists++
					if c.err != "" && lists == c.answers {
						// The command ends before the next look.
						time.AfterFunc(realNodePoll/2, cancel)
					}
					return lists < c.answers || c.failing, nil, errors.New("connection refused")
				})
				err := awaitReal(ctx, client, path, func(string) {})
				testkit.Fails(t, err, c.err)
				assert.Equal(t, c.err != "", errors.Is(err, context.Canceled))
			})
		})
	}
}

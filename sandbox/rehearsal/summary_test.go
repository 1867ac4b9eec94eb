package rehearsal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"persia/config"
	"persia/internal/testkit"
	"persia/stack/effects"
)

// TestRefusals: who refuses what, and where, in messages as the program, Google, and Kubernetes write them.
func TestRefusals(t *testing.T) {
	const urn = "urn:pulumi:dev::persia::"
	for name, c := range map[string]struct {
		urn, message string
		want         refusals
	}{
		"the program, at two paths": {"", "an unhandled error occurred: 2 errors occurred:\n\t* persia:jobs[0].name: Required value: write a name\npersia:nats.size: Invalid value: 2: write 1 or 3\n",
			refusals{{"the program", "persia:jobs[0].name", "Required value: write a name"}, {"the program", "persia:nats.size", "Invalid value: 2: write 1 or 3"}}},
		"the program, without a path": {"", "read the state: broken", refusals{{"the program", "preview", "read the state: broken"}}},
		"Google": {urn + "gcp:container/nodePool:NodePool::persia-dev-gpu", "googleapi: Error 400: no such zone",
			refusals{{"Google", "gcp:container/nodePool:NodePool persia-dev-gpu", "googleapi: Error 400: no such zone"}}},
		"the API server": {urn + "kubernetes:apps/v1:StatefulSet::train-nn-worker", "is invalid: spec.replicas",
			refusals{{"Kubernetes", "kubernetes:apps/v1:StatefulSet train-nn-worker", "is invalid: spec.replicas"}}},
		"a policy": {urn + "kubernetes:core/v1:Pod::a", "ValidatingAdmissionPolicy 'images' with binding 'all' denied request",
			refusals{{"the policy images", "kubernetes:core/v1:Pod a", "ValidatingAdmissionPolicy 'images' with binding 'all' denied request"}}},
		"the end of an update": {urn + "pulumi:pulumi:Stack::persia-dev", "update failed", nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, refusalsOf(c.urn, "preview", c.message)) })
	}
}

// TestCompare compares what is announced with what happens, one kind of object at a time.
func TestCompare(t *testing.T) {
	of := func(id string) snapshot {
		return snapshot{objects: map[string]map[types.UID]bool{"train-nn-worker": {types.UID(id): true}, "pool gpu": {types.UID(id): true}, "claim data": {types.UID(id): true}}}
	}
	ends := []effects.Effect{{Ends: []string{"train-nn-worker", "pool gpu"}}}
	for name, c := range map[string]struct {
		after     string
		announced []effects.Effect
		claims    []string
		problems  int
	}{
		"all as announced":         {"b", ends, []string{"data"}, 0},
		"nothing":                  {"a", nil, nil, 0},
		"may end, and stays":       {"a", []effects.Effect{{Risks: []string{"train-nn-worker", "pool gpu"}}}, nil, 0},
		"nothing is announced":     {"b", nil, nil, 3},
		"a claim is not announced": {"b", ends, nil, 1},
		"nothing happens":          {"a", ends, []string{"data"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var s Summary
			s.compare(of("a"), of(c.after), c.announced, c.claims, &config.Stack{})
			assert.Len(t, s.problems, c.problems, "%s", s)
			assert.Equal(t, c.problems == 0, s.OK())
		})
	}
	long := Summary{problems: make([]string, 100), refusals: refusals{{Says: strings.Repeat("line\n", 100)}}}
	assert.Equal(t, 25, strings.Count(long.String(), "\n"))
	assert.Contains(t, long.Markdown(), "REFUSED")
}

// TestLook: a pod whose container restarts has ended, also one of PERSIA's operator, which has no label of its role.
func TestLook(t *testing.T) {
	const name = "train-embedding-ps"
	at := func(restarts int32, labels map[string]string) snapshot {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-0", Namespace: "persia", UID: "a", Labels: labels}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{}, {RestartCount: restarts}}
		return testkit.Must(look(t.Context(), fake.NewClientset(pod)))(t)
	}
	for _, labels := range []map[string]string{
		{config.JobLabel: "train", "app.kubernetes.io/name": "embedding-ps"}, {config.JobLabel: "train"},
	} {
		before := at(3, labels)
		assert.Equal(t, 0, before.lost(name, at(3, labels)))
		assert.Equal(t, 1, before.lost(name, at(4, labels)))
	}
}

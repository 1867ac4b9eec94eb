package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// condition returns a condition of a record.
func condition(kind, reason string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Reason: reason, Status: status, Message: "because"}
}

// inQueue returns the workload of a job, as Kueue v0.16.1 writes it.
func inQueue(job, queue string, conditions ...metav1.Condition) record {
	w := record{ObjectMeta: metav1.ObjectMeta{
		Namespace: "persia", Name: "jobset-" + job + "-4a113", OwnerReferences: []metav1.OwnerReference{{Name: job, Controller: new(true)}},
	}}
	w.Spec.QueueName, w.Status.Conditions = queue, conditions
	return w
}

func TestQueued(t *testing.T) {
	full := condition("QuotaReserved", "Pending", metav1.ConditionFalse)
	inactive := inQueue("a", "ads", condition("Evicted", "Deactivated", metav1.ConditionTrue))
	inactive.Spec.Active = new(false)
	waits := inQueue("a", "ads", condition("Evicted", "PodsReadyTimeout", metav1.ConditionTrue))
	waits.Status.RequeueState.Count, waits.Status.RequeueState.RequeueAt = 2, &metav1.Time{Time: now.Add(time.Minute)}
	backToQueue := waits
	backToQueue.Status.RequeueState.RequeueAt = &metav1.Time{Time: now}
	b := inQueue("b", "ranking", full)
	for name, c := range map[string]struct {
		workloads []record
		// a and b are what the jobs wait for.
		a, b string
	}{
		"no queues":                              {},
		"one runs":                               {[]record{inQueue("a", "ads", full, condition("Admitted", "", metav1.ConditionTrue)), b}, "", "in the queue ranking: because"},
		"one is complete":                        {[]record{inQueue("a", "ads", condition("Finished", "", metav1.ConditionTrue)), b}, "", "in the queue ranking: because"},
		"both wait":                              {[]record{b, inQueue("a", "ads", full)}, "in the queue ads: because", "in the queue ranking: because"},
		"stopped for a more urgent job":          {[]record{inQueue("a", "ads", condition("Evicted", "Preempted", metav1.ConditionTrue))}, "in the queue ads: because", ""},
		"backs off":                              {[]record{waits}, "out of the queue ads until 2026-11-24T12:01:00Z, after 2 starts without all pods: because", ""},
		"has backed off":                         {[]record{backToQueue}, "in the queue ads: because", ""},
		"inactive":                               {[]record{inactive}, "out of the queue ads until it is active: because", ""},
		"waits for nodes, with a share of quota": {[]record{inQueue("a", "ads", condition("QuotaReserved", "", metav1.ConditionTrue))}, "in the queue ads: because", ""},
		"new":                                    {[]record{inQueue("a", "ads")}, "in the queue ads: Kueue has not looked at it yet", ""},
	} {
		t.Run(name, func(t *testing.T) {
			waits := queued(c.workloads, now)
			for job, want := range map[string]string{"a": c.a, "b": c.b} {
				if want == "" {
					assert.Empty(t, waits["persia/"+job])
					continue
				}
				next := "kubectl -n persia describe workload jobset-" + job + "-4a113"
				if name == "inactive" {
					next = `kubectl -n persia patch workload jobset-a-4a113 --type merge --patch '{"spec": {"active": true}}'`
				}
				assert.Equal(t, []Wait{{Cause: "queue", Pod: job, Says: want, Next: next}}, waits["persia/"+job])
			}
		})
	}
}

// TestRequested: a later condition says more than those before, which GKE keeps.
func TestRequested(t *testing.T) {
	r := record{ObjectMeta: metav1.ObjectMeta{Namespace: "persia", Name: "feed"}}
	for _, c := range []struct {
		condition string
		status    metav1.ConditionStatus
		says      string
	}{
		{"", "", "GKE has not looked at the request yet"},
		{"Accepted", metav1.ConditionTrue, "GKE waits until it has all nodes at once: because"},
		{"Failed", metav1.ConditionFalse, "GKE waits until it has all nodes at once: because"},
		{"Provisioned", metav1.ConditionTrue, "the nodes are there: because"},
		{"BookingExpired", metav1.ConditionTrue, "the nn-workers have not used the nodes in time, and GKE is asked again: because"},
		{"CapacityRevoked", metav1.ConditionTrue, "GKE has taken the nodes back, and is asked again: because"},
		{"Failed", metav1.ConditionTrue, "GKE has given up, and is asked again: because"},
	} {
		r.Status.Conditions = append([]metav1.Condition{condition(c.condition, "", c.status)}, r.Status.Conditions...)
		want := Wait{Cause: "nodes", Pod: "feed", Says: c.says, Next: "kubectl -n persia describe provisioningrequest feed"}
		assert.Equal(t, []Wait{want}, requested([]record{r})["persia/feed"])
	}
	r.Annotations = map[string]string{"persia.com/tried": "a TIME: none; b"}
	assert.Equal(t, "a TIME: none; b: GKE has given up, and is asked again: because", requested([]record{r})["persia/feed"][0].Says)
}

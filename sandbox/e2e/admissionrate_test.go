package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"persia/config/jobspec"
)

var clusterQueues = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "clusterqueues"}

// BenchmarkAdmission measures how long Kueue takes to queue 1,000 jobs of four replicas, and then, from
// the moment when their team has quota for all, to admit them. Few of the pods find room on a node.
func BenchmarkAdmission(b *testing.B) {
	buildKueue(b)
	const jobs = 1000
	var figures []figure
	for range b.N {
		a := newQueuedSets(b, object{"nnWorker": gpuRole("gpu", 1, "4", "8Gi", 1)}, []object{
			{"name": "gpu", "machineType": "g2-standard-8", "nodes": 1, "gpu": object{"type": "nvidia-l4", "count": 1}},
		})
		b.Cleanup(a.deleteAll)
		a.patchQueue("ranking", `{"spec": {"stopPolicy": "Hold"}}`)
		started := time.Now()
		a.createMany(jobs)
		a.awaitWorkloads(jobs, "QuotaReserved", metav1.ConditionFalse)
		queued := time.Since(started)

		opened := time.Now()
		a.liftQuotas("ranking")
		a.awaitWorkloads(jobs, "Admitted", metav1.ConditionTrue)
		admitted := time.Since(opened)
		stack := fmt.Sprintf("%d jobs", jobs)
		figures = append(figures,
			figure{stack, "queued after s", queued.Seconds(), 0},
			figure{stack, "admitted after s", admitted.Seconds(), 0},
			figure{stack, "admissions per s", jobs / admitted.Seconds(), 0})
		b.ReportMetric(admitted.Seconds(), "admitted-s")
		b.ReportMetric(0, "ns/op")
	}
	printTables(figureTable(figures))
}

// createMany has jobs with one replica of each role arrive in the queue ranking.
func (a queuedSets) createMany(jobs int) {
	a.t.Helper()
	one := map[string]int{}
	for _, kind := range jobspec.Kinds() {
		one[kind.Name] = 1
	}
	for n := range jobs {
		a.create(fmt.Sprintf("job-%04d", n), "ranking", one)
	}
}

func (a queuedSets) patchQueue(team, patch string) {
	a.t.Helper()
	_, err := a.client.Resource(clusterQueues).Patch(a.t.Context(), "persia-"+team, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(a.t, err)
}

// liftQuotas lets any number of jobs start.
func (a queuedSets) liftQuotas(team string) {
	a.t.Helper()
	queue, err := a.client.Resource(clusterQueues).Get(a.t.Context(), "persia-"+team, metav1.GetOptions{})
	require.NoError(a.t, err)
	spec := queue.Object["spec"].(object)
	spec["stopPolicy"] = "None"
	for _, group := range spec["resourceGroups"].([]any) {
		for _, flavor := range group.(object)["flavors"].([]any) {
			for _, quota := range flavor.(object)["resources"].([]any) {
				quota.(object)["nominalQuota"] = "100T"
			}
		}
	}
	_, err = a.client.Resource(clusterQueues).Update(a.t.Context(), queue, metav1.UpdateOptions{})
	require.NoError(a.t, err)
}

// awaitWorkloads waits until a condition of so many jobs has a status. The time in the condition is no
// measure: Kueue sets it when it decides, and writes the condition later.
func (a queuedSets) awaitWorkloads(jobs int, condition string, status metav1.ConditionStatus) {
	a.t.Helper()
	const pause = time.Second // a list of all jobs is work for the API server
	require.NoError(a.t, wait.PollUntilContextTimeout(a.t.Context(), pause, 4*patience, true, func(ctx context.Context) (bool, error) {
		list, err := a.of(workloads).List(ctx, metav1.ListOptions{})
		if err != nil {
			a.t.Logf("list the workloads: %v", err) // the API server is busy
			return false, nil
		}
		reached := 0
		for _, workload := range list.Items {
			found := meta.FindStatusCondition(conditionsOf(a.t, workload), condition)
			if found != nil && found.Status == status {
				reached++
			}
		}
		return reached == jobs, nil
	}), "%s of %d jobs is %s", condition, jobs, status)
}

// deleteAll deletes all JobSets, for which `down` would wait.
func (a queuedSets) deleteAll() {
	a.t.Helper()
	ctx := context.Background() // the test has ended
	background := metav1.DeletePropagationBackground
	require.NoError(a.t, wait.PollUntilContextTimeout(ctx, 5*time.Second, 4*patience, true, func(ctx context.Context) (bool, error) {
		err := a.of(jobSets).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
		list, unlisted := a.of(jobSets).List(ctx, metav1.ListOptions{Limit: 1})
		if err := errors.Join(err, unlisted); err != nil {
			a.t.Logf("delete the JobSets: %v", err) // the API server is busy
			return false, nil
		}
		return len(list.Items) == 0, nil
	}), "all JobSets are gone")
}

package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"persia/config/jobspec"
	"persia/workload/jobset"
)

// TestArrivals: jobs of random sizes arrive in the queues of two teams and complete at random moments.
// Between two events, each job has all of its pods or none, some job runs while one waits, and at the
// end all are complete. The long form has 200 jobs.
func TestArrivals(t *testing.T) {
	t.Parallel()
	buildKueue(t)
	seed := firstSeed(t)
	count := forms(15, 200)
	const nodes, largest = 8, 5
	a := newQueuedSets(t, object{
		"nnWorker":                 gpuRole("gpu", 1, "4", "8Gi", 1),
		"embeddingParameterServer": role("servers", 1, "6", "8Gi"),
	}, []object{
		{"name": "gpu", "machineType": "g2-standard-8", "nodes": nodes, "gpu": object{"type": "nvidia-l4", "count": 1}},
		{"name": "servers", "machineType": "n2-standard-8", "nodes": nodes},
	})
	random := rand.New(rand.NewPCG(seed, 0))
	started, most := time.Now(), 0
	for arrived := 0; arrived < count || len(a.replicas) > 0; {
		for range min(random.IntN(4), count-arrived) {
			arrived++
			a.create(fmt.Sprintf("job-%03d", arrived), []string{"ranking", "ads"}[random.IntN(2)], map[string]int{
				jobspec.KindNNWorker.Name:                 1 + random.IntN(largest),
				jobspec.KindDataloader.Name:               1 + random.IntN(4),
				jobspec.KindEmbeddingWorker.Name:          1 + random.IntN(2),
				jobspec.KindEmbeddingParameterServer.Name: 1 + random.IntN(largest),
			})
		}
		running := a.settle()
		most = max(most, len(running))
		if len(running) > 0 && (arrived == count || random.IntN(2) == 0) {
			a.complete(running[random.IntN(len(running))])
		}
	}
	report(t, "%d jobs, at most %d at once, in %s", count, most, time.Since(started).Round(time.Second))
}

// queuedSets are JobSets in queues, made from the one that the program makes of a job.
type queuedSets struct {
	t        testing.TB
	pods     kubernetes.Interface
	client   dynamic.Interface
	template jobset.JobSet
	// replicas are how many pods each JobSet has that is not complete.
	replicas map[string]int
}

// newQueuedSets brings up a stack with queues and a job with these roles, which is suspended.
func newQueuedSets(t testing.TB, roles object, pools []object) queuedSets {
	t.Helper()
	project := t.TempDir()
	a := queuedSets{t: t, replicas: map[string]int{}}
	for _, suspend := range []bool{false, true} {
		template := job("template", roles)
		template["engine"], template["queue"], template["suspend"] = "jobset", "ranking", suspend
		configuration := stackText(t, project, madeUp{jobs: []object{template}, pools: pools})
		// No job is stopped for another, so each runs until it is complete.
		configuration["persia:queue"] = object{"teams": []object{{"name": "ranking"}, {"name": "ads"}}, "betweenTeams": "Never"}
		writeConfiguration(t, project, "madeup", configuration)
		if !suspend {
			objects := kubernetesObjects(t, project, "madeup")
			at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == jobset.Kind })
			require.GreaterOrEqual(t, at, 0, "a JobSet")
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[at].Object, &a.template))
		}
	}
	s := newSandboxOf(t, project, t.TempDir(), "madeup")
	require.NoError(t, s.Apply(t.Context()))
	config, err := s.Cluster().RESTConfig()
	require.NoError(t, err)
	config.QPS = -1
	a.pods, a.client = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	return a
}

func (a queuedSets) of(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return a.client.Resource(resource).Namespace("persia")
}

// create has a job with so many replicas of each role arrive in the queue of a team.
func (a queuedSets) create(name, team string, replicas map[string]int) {
	a.t.Helper()
	text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&a.template)
	require.NoError(a.t, err)
	var set jobset.JobSet
	require.NoError(a.t, runtime.DefaultUnstructuredConverter.FromUnstructured(text, &set))
	set.Name, set.Spec.Network.Subdomain = name, name
	set.Labels["kueue.x-k8s.io/queue-name"] = team
	for i, of := range set.Spec.ReplicatedJobs {
		count := int32(replicas[of.Name])
		spec := &set.Spec.ReplicatedJobs[i].Template.Spec
		spec.Parallelism, spec.Completions = &count, &count
		// The name of the job's own contains a hash of the stack's name.
		spec.Template.Spec.ServiceAccountName = "default"
		a.replicas[name] += int(count)
	}
	text, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&set)
	require.NoError(a.t, err)
	_, err = a.of(jobSets).Create(a.t.Context(), &unstructured.Unstructured{Object: text}, metav1.CreateOptions{})
	require.NoError(a.t, err)
}

// active returns the pods of each job that are neither complete nor on their way out.
func (a queuedSets) active() map[string][]corev1.Pod {
	a.t.Helper()
	list, err := a.pods.CoreV1().Pods("persia").List(a.t.Context(), metav1.ListOptions{LabelSelector: jobSetLabel})
	require.NoError(a.t, err)
	active := map[string][]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded {
			active[pod.Labels[jobSetLabel]] = append(active[pod.Labels[jobSetLabel]], pod)
		}
	}
	return active
}

const jobSetLabel = "jobset.sigs.k8s.io/jobset-name"

// settle waits until each job that is not complete has no pod, or runs with all of its pods, and one runs
// if any is there. It returns the ones that run, in order.
func (a queuedSets) settle() []string {
	a.t.Helper()
	var running []string
	await(a.t, func() bool {
		running = nil
		for name, pods := range a.active() {
			ready := !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return readySince(pod).IsZero() })
			if !ready || len(pods) != a.replicas[name] {
				return false
			}
			running = append(running, name)
		}
		return len(running) > 0 || len(a.replicas) == 0
	}, "each job has all of its pods or none, and one runs")
	slices.Sort(running)
	return running
}

// complete ends the nn-workers and dataloaders of a job as launch.py does.
func (a queuedSets) complete(name string) {
	a.t.Helper()
	delete(a.replicas, name)
	for _, pod := range a.active()[name] {
		switch pod.Labels["app.kubernetes.io/name"] {
		case jobspec.KindNNWorker.Name, jobspec.KindDataloader.Name:
			_, err := a.pods.CoreV1().Pods("persia").Patch(a.t.Context(), pod.Name, types.MergePatchType,
				[]byte(`{"status": {"phase": "Succeeded"}}`), metav1.PatchOptions{}, "status")
			require.NoError(a.t, err)
		}
	}
	await(a.t, func() bool {
		set, err := a.of(jobSets).Get(a.t.Context(), name, metav1.GetOptions{})
		require.NoError(a.t, err)
		return meta.IsStatusConditionTrue(conditionsOf(a.t, *set), "Completed") && len(a.active()[name]) == 0
	}, "%s is complete, and its servers end", name)
}

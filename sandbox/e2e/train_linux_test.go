package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/internal/testkit"
)

// TestTrain trains with PERSIA's own processes on a real node. The program,
// unchanged, deploys examples/Pulumi.train.yaml, and then, with -long, other jobs in its place.
func TestTrain(t *testing.T) {
	early(t, func(t *testing.T) { newTraining(t, config.EngineStatefulSet).test(t) })
}

// early runs a test that takes longest and mostly waits beside the parallel tests, without waiting for a turn.
func early(t *testing.T, test func(*testing.T)) {
	var running sync.WaitGroup
	running.Go(func() { t.Run("on a real node", test) })
	t.Parallel()
	running.Wait()
}

func (r *training) test(t *testing.T) {
	for _, scenario := range []struct {
		name string
		test func(*testing.T)
	}{
		{"the example", r.testExample},
		{"network policies", r.testPolicies},
		{"interrupted", r.testInterrupted},
		{"recovery", r.testKept},
		{"slow replicas", r.testSlow},
	}[:forms(2, 5)] {
		if !t.Run(scenario.name, scenario.test) {
			return
		}
	}
}

// testExample: the stack file as it is published trains to the end.
func (r *training) testExample(t *testing.T) {
	r.up(t)
	require.NoError(t, r.s.AwaitTrainings(t.Context()))
	r.assertTrained(t, "clicks", "1", 600)
	assertPushed(t, r)
}

// assertPushed checks that the Pushgateway of the example's job has the metrics of the replicas
// when the job is complete, and the AUC of the training script.
func assertPushed(t *testing.T, r *training) {
	t.Helper()
	attempt := r.volume.checkpoint("clicks", "1").attempt
	var want []string
	for role, end := range map[string]struct{ replicas, alive, finished int }{
		"nn-worker":        {2, 0, 1},
		"dataloader":       {2, 0, 1},
		"embedding-worker": {2, 1, 1},
		"embedding-ps":     {3, 1, 1},
	} {
		for replica := range end.replicas {
			for metric, value := range map[string]int{"attempt": attempt, "alive": end.alive, "finished": end.finished} {
				want = append(want, fmt.Sprintf(`persia_replica_%s{instance="",job="clicks",of="%d",replica="%d",role="%s",run="1"} %d`,
					metric, end.replicas, replica, role, value))
			}
		}
	}
	// Each replica tells every 15 seconds.
	const script = `
		for i in $(busybox seq 60); do
			metrics=$(busybox wget -q -O - http://clicks-metrics-gateway-service:9091/metrics)
			[ "$(echo "$metrics" | busybox grep -c '^persia_replica_finished.* 1$')" = 9 ] && break
			sleep 2
		done
		echo "$metrics"
	`
	metrics := strings.Split(callScript(t, r, "persia", map[string]string{"persia_job": "clicks"}, script), "\n")
	for _, line := range want {
		assert.Contains(t, metrics, line)
	}
	assert.Contains(t, strings.Join(metrics, "\n"), "\npersia_model_auc{instance=\"\",job=\"model\"} 0.")
}

// testPolicies: what a pod of the job reaches, a pod of another namespace does not.
func (r *training) testPolicies(t *testing.T) {
	// Servers go on when their job is complete.
	var reach []string
	for _, target := range []struct{ pod, port string }{
		{"clicks-nn-worker-0", "8886"},
		{"clicks-embedding-worker-1", "8887"},
		{"clicks-embedding-ps-2", "8888"},
	} {
		pod := testkit.Must(r.CoreV1().Pods("persia").Get(t.Context(), target.pod, metav1.GetOptions{}))(t)
		reach = append(reach, pod.Status.PodIP+" "+target.port)
	}
	for _, pod := range r.pods("nats-io", "app=nats") {
		reach = append(reach, pod.Status.PodIP+" 4222")
	}
	testkit.Must(r.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "strangers"}}, metav1.CreateOptions{}))(t)
	for _, caller := range []struct {
		namespace string
		labels    map[string]string
		want      string
	}{
		{"strangers", map[string]string{"persia_job": "clicks"}, "closed"},
		{"persia", map[string]string{"persia_job": "another"}, "closed"},
		{"persia", map[string]string{"persia_job": "clicks"}, "open"},
	} {
		log := r.call(t, caller.namespace, caller.labels, caller.want, reach)
		for _, target := range reach {
			assert.Contains(t, log, target+" "+caller.want+"\n", "%s %v", caller.namespace, caller.labels)
		}
	}
}

// call runs a pod that tells which addresses are open to it. A policy is enforced some moments after a pod has started,
// and so it tries until the first address is as wanted.
func (r *training) call(t *testing.T, namespace string, labels map[string]string, want string, addresses []string) string {
	t.Helper()
	script := `
		look() { if busybox nc -w 2 "$1" "$2" </dev/null >/dev/null 2>&1; then echo open; else echo closed; fi; }
		for i in 1 2 3 4 5 6 7 8 9 10; do [ "$(look ` + addresses[0] + `)" = ` + want + ` ] && break; sleep 1; done
		while read -r host port; do echo "$host $port $(look "$host" "$port")"; done <<END
` + strings.Join(addresses, "\n") + "\nEND\n"
	return callScript(t, r, namespace, labels, script)
}

// callScript runs a pod with a script, and returns its output.
func callScript(t *testing.T, r *training, namespace string, labels map[string]string, script string) string {
	t.Helper()
	pod, err := r.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "caller-", Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "caller", Image: "prom/pushgateway:v1.11.1", Command: []string{"/bin/sh", "-c", script}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	await(t, func() bool {
		now, err := r.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		return err == nil && (now.Status.Phase == corev1.PodSucceeded || now.Status.Phase == corev1.PodFailed)
	}, "%s ends", pod.Name)
	log := r.logs(namespace, pod.Name)
	require.NoError(t, r.CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	return log
}

// upstream is the job of PERSIA's operator.
const upstream = "upstream"

// operatorJob returns the example's job with NATS of its own, and with the engine operator.
func (r *training) operatorJob(t *testing.T) object {
	t.Helper()
	job := r.exampleJob(t)
	maps.Copy(job, object{
		"name": upstream, "engine": "operator", "nats": object{"size": 1}, "enableMetrics": true,
		"env": []object{{"name": "PERSIA_CKPT_DIR", "value": "/checkpoints/" + upstream + "/1/attempt-1"}},
	})
	return job
}

// testOperator: PERSIA's own operator, from PERSIA's package, makes the pods of the same
// training, with no rights but those that it needs, and its end is seen.
func (r *training) testOperator(t *testing.T) {
	operator := r.pods("persia-operator", "app.kubernetes.io/name=persia-operator")
	require.Len(t, operator, 1)
	container := operator[0].Spec.Containers[0].SecurityContext
	assert.True(t, *operator[0].Spec.SecurityContext.RunAsNonRoot)
	assert.True(t, *container.ReadOnlyRootFilesystem)
	assert.Equal(t, "ALL", string(container.Capabilities.Drop[0]))
	await(t, func() bool {
		return strings.Contains(r.logs("persia-operator", operator[0].Name), "Creating PersiaJob: "+upstream)
	}, "the operator creates the job: %s", &words{r, "persia-operator", operator[0].Name})

	const count = 2 + 2 + 2 + 3 + 1
	await(t, func() bool { return len(r.pods("persia", "persia_job="+upstream)) == count }, "%d pods", count)
	for _, pod := range r.pods("persia", "persia_job="+upstream) {
		assert.Empty(t, pod.OwnerReferences, "%s: the operator makes pods, and nothing else", pod.Name)
		for _, volume := range pod.Spec.Volumes {
			assert.Nil(t, volume.Projected, "%s has a token", pod.Name)
		}
	}
	r.assertTrained(t, upstream, "1", 600)
}

// TestTrainJobSet trains with the engine jobset on a real node, where JobSet's own program runs
// as a pod. Each interruption ends an attempt, and nothing holds the node when the job is complete.
func TestTrainJobSet(t *testing.T) {
	nightly(t)
	t.Parallel()
	r := newTraining(t, config.EngineJobSet)
	small := object{"replicas": 1}
	r.upWith(t, r.arrivingJob(t, "set", 3, object{
		"nats": object{"size": 1}, "enableMetrics": true,
		"dataloader": small, "embeddingWorker": small, "embeddingParameterServer": object{"replicas": 2},
	}))
	r.volume.arrive(t, "set", allBatches, allBatches)
	r.assertTrained(t, "set", "1", allBatches)
	require.NoError(t, r.s.AwaitTrainings(t.Context()))
	r.assertEnded(t, "set")
	t.Run("recovery", r.testKept)
	t.Run("interrupted", r.testInterrupted)
}

// assertEnded: of a complete job, the completion's pod alone runs, and ends; its servers and gateway are gone.
func (r *training) assertEnded(t *testing.T, job string) {
	t.Helper()
	var left []string
	await(t, func() bool {
		left = nil
		for _, pod := range r.pods("persia", "persia_job="+job) {
			if pod.Status.Phase != corev1.PodSucceeded {
				left = append(left, fmt.Sprintf("%s: %s", pod.Name, pod.Status.Phase))
			}
		}
		return len(left) == 0
	}, "pods of a complete job: %v", &left)
	assert.Empty(t, r.pods("persia", "app.kubernetes.io/name in (embedding-ps,embedding-worker,metrics-gateway),persia_job="+job))
	var text bytes.Buffer
	require.NoError(t, r.s.Status(t.Context(), &text))
	assert.Contains(t, text.String(), "job "+job+": complete")
}

// nameOf returns the name of the pod of a replica, JOB-ROLE-INDEX, whichever engine creates it: a
// JobSet's pod has a random end, and a substitute has another one.
func (r *training) nameOf(namespace, replica string) string {
	dash := strings.LastIndex(replica, "-")
	pods, err := r.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name"})
	if err != nil || dash < 0 {
		return replica
	}
	for _, pod := range pods.Items {
		if pod.Spec.Hostname == replica[:dash]+"-0"+replica[dash:] && pod.DeletionTimestamp == nil {
			return pod.Name
		}
	}
	return replica
}

// TestKeptServers disturbs trainings of processes on this machine: the project's launchers around PERSIA's own programs.
func TestKeptServers(t *testing.T) {
	t.Parallel()
	_, archives := trainingImages(t)
	root := testkit.Must(filepath.Abs(repository))(t)
	nats, runs, seed := filepath.Join(binDir(), "nats-server"), fmt.Sprint(forms(1, 10)), fmt.Sprint(firstSeed(t))
	for _, scenario := range []string{"Adam(lr=0.02)", "Adagrad(lr=0.1)", "causes", "frozen", "numbers"}[:forms(1, 5)] {
		t.Run(scenario, func(t *testing.T) {
			folder := t.TempDir()
			// The launchers must not see the mounts of buckets that other tests break.
			output, err := exec.Command("unshare", "--mount", "sh", "-c", `umount --lazy --all --types fuse.gcsfuse,fuse; exec "$@"`, "sh",
				"python3", "testdata/keptservers.py", folder, root, archives, nats, scenario, runs, seed).CombinedOutput()
			t.Logf("%s", output)
			if err != nil {
				logFiles(t, filepath.Join(folder, "*", "*.log"))
			}
			require.NoError(t, err)
		})
	}
}

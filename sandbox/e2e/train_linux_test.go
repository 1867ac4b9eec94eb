package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
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
	}[:forms(2, 4)] {
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
		pod, err := r.CoreV1().Pods("persia").Get(t.Context(), target.pod, metav1.GetOptions{})
		require.NoError(t, err)
		reach = append(reach, pod.Status.PodIP+" "+target.port)
	}
	for _, pod := range r.pods("nats-io", "app=nats") {
		reach = append(reach, pod.Status.PodIP+" 4222")
	}
	_, err := r.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "strangers"}}, metav1.CreateOptions{})
	require.NoError(t, err)
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

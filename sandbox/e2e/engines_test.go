package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// jobSetToStatefulSet is how long the engine jobset may take until all pods of prod are ready, as a
// multiple of the StatefulSets' time.
const jobSetToStatefulSet = 1.1

// BenchmarkEngines measures how long after the start of `up`, on a control plane that runs, the last role
// pod of prod became ready, with each engine. It prints the ratio and its goal. `up` itself takes longer
// with either engine: it waits for NATS too.
func BenchmarkEngines(b *testing.B) {
	buildJobSet(b)
	var figures []figure
	for range b.N {
		took := map[string]float64{}
		for _, engine := range []string{"statefulset", "jobset"} {
			b.Run(engine, func(b *testing.B) {
				took[engine] = benchmarkEngine(b, engine).Seconds()
				b.ReportMetric(took[engine], "ready-s")
				b.ReportMetric(0, "ns/op")
			})
			figures = append(figures, figure{"prod", engine + " ready-s", took[engine], 0})
		}
		figures = append(figures, figure{"prod", "jobset / statefulset", took["jobset"] / took["statefulset"], jobSetToStatefulSet})
	}
	printTables(figureTable(figures))
}

func benchmarkEngine(b *testing.B, engine string) time.Duration {
	project := editStack(b, "prod", "- name: criteo\n", "- name: criteo\n      engine: "+engine+"\n")
	s := newSandboxOf(b, project, b.TempDir(), "prod")
	require.NoError(b, s.Cluster().Start(b.Context(), b.Output()))
	started := time.Now()
	require.NoError(b, s.Apply(b.Context()))
	config, err := s.Cluster().RESTConfig()
	require.NoError(b, err)
	client := kubernetes.NewForConfigOrDie(config)
	var last time.Time
	await(b, func() bool {
		pods, err := client.CoreV1().Pods("persia").List(b.Context(), metav1.ListOptions{
			LabelSelector: "persia_job=criteo,app.kubernetes.io/name in (nn-worker,dataloader,embedding-worker,embedding-ps)",
		})
		require.NoError(b, err)
		ready := 0
		for _, pod := range pods.Items {
			if since := readySince(pod); !since.IsZero() {
				ready++
				last = latest(last, since)
			}
		}
		return ready == 468
	}, "all role pods are ready")
	return last.Sub(started)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

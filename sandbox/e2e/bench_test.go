package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"persia/sandbox/stackgen"
	"persia/sandbox/toolchain"
)

// BenchmarkUp compares `up` with kubectl, which brings up the same Kubernetes objects on the same control
// plane with the same nodes, and measures the commands that change nothing. The goals are in
// docs/contribute/performance.md. -benchtime must be 1x.
func BenchmarkUp(b *testing.B) {
	compile(b, toolchain.OfBenchmarks)
	b.Run("prod", func(b *testing.B) { benchmarkUp(b, repository, "prod") })
	b.Run("jobs=10", func(b *testing.B) {
		project := b.TempDir()
		writeJobs(b, project, 10)
		benchmarkUp(b, project, "madeup")
	})
}

func benchmarkUp(b *testing.B, project, stack string) {
	measure := func(unit string, do func()) float64 {
		started := time.Now()
		do()
		seconds := time.Since(started).Seconds()
		b.ReportMetric(seconds, unit)
		return seconds
	}
	s := newSandboxOf(b, project, b.TempDir(), stack)
	up := func() { require.NoError(b, s.Apply(b.Context())) }
	up() // makes the cluster and its nodes, too
	config, err := s.Cluster().RESTConfig()
	require.NoError(b, err)
	k := kubectlUp{b, kubernetes.NewForConfigOrDie(config), b.TempDir(), s.Kubeconfig()}
	k.write(project, stack)
	pods := k.readyPods()

	k.remove()
	_, err = s.Refresh(b.Context())
	require.NoError(b, err)
	took := measure("up-s", up)
	measure("second-up-s", up)
	measure("second-preview-s", func() { _, err := s.Preview(b.Context()); require.NoError(b, err) })
	k.remove()
	b.ReportMetric(took/measure("kubectl-s", func() { k.apply(pods) }), "up/kubectl")
	b.ReportMetric(0, "ns/op")
}

// kubectlUp brings up the objects of a stack with kubectl.
type kubectlUp struct {
	b               *testing.B
	client          kubernetes.Interface
	dir, kubeconfig string
}

// write writes a file for each step of kubectl's: definitions, namespaces, and all other objects.
func (k kubectlUp) write(project, stack string) {
	k.b.Helper()
	files := map[string]*strings.Builder{"definitions": {}, "namespaces": {}, "others": {}}
	for _, object := range kubernetesObjects(k.b, project, stack) {
		file := "others"
		switch object.GetKind() {
		case "CustomResourceDefinition":
			file = "definitions"
		case "Namespace":
			file = "namespaces"
		}
		files[file].WriteString("---\n")
		require.NoError(k.b, json.NewEncoder(files[file]).Encode(object)) // JSON is YAML
	}
	for name, text := range files {
		require.NoError(k.b, os.WriteFile(filepath.Join(k.dir, name+".yaml"), []byte(text.String()), 0o600))
	}
}

func (k kubectlUp) run(args ...string) {
	k.b.Helper()
	command := exec.CommandContext(k.b.Context(), tools.Path("kubectl"), args...)
	command.Dir, command.Env = k.dir, []string{"HOME=" + k.dir, "KUBECONFIG=" + k.kubeconfig}
	output, err := command.CombinedOutput()
	require.NoError(k.b, err, "kubectl %s\n%s", strings.Join(args, " "), output)
}

// remove deletes all objects, the pods of the namespaces with them.
func (k kubectlUp) remove() {
	k.b.Helper()
	for _, file := range []string{"others", "namespaces", "definitions"} {
		k.run("delete", "--ignore-not-found", "--cascade=foreground", "-f", file+".yaml")
	}
}

// apply applies all objects, and waits until as many pods are ready as there were.
func (k kubectlUp) apply(pods int) {
	k.b.Helper()
	k.run("apply", "-f", "definitions.yaml")
	k.run("wait", "--for=condition=Established", "-f", "definitions.yaml")
	k.run("apply", "-f", "namespaces.yaml")
	k.run("apply", "-f", "others.yaml")
	await(k.b, func() bool { return k.readyPods() >= pods }, "%d pods are ready", pods)
}

func (k kubectlUp) readyPods() (ready int) {
	k.b.Helper()
	list, err := k.client.CoreV1().Pods(corev1.NamespaceAll).List(k.b.Context(), metav1.ListOptions{})
	require.NoError(k.b, err)
	for _, pod := range list.Items {
		if !readySince(pod).IsZero() {
			ready++
		}
	}
	return ready
}

// kubernetesObjects returns the objects that the program registers for a stack. Some of their names
// contain a hash of the stack's name, which differs here.
func kubernetesObjects(b testing.TB, project, stack string) []*unstructured.Unstructured {
	b.Helper()
	file := "Pulumi." + stack + ".yaml"
	stacks, err := stackgen.ReadStacks(os.DirFS(project), file)
	require.NoError(b, err)
	objects, err := stackgen.Objects(stacks[file], project)
	require.NoError(b, err)
	require.NotEmpty(b, objects)
	return objects
}

// writeJobs writes a stack of small jobs, alike but for their names.
func writeJobs(t testing.TB, project string, count int) {
	t.Helper()
	jobs := make([]object, count)
	for i := range jobs {
		jobs[i] = job(fmt.Sprintf("train-%03d", i), object{"enableMetrics": true})
	}
	configuration := stackText(t, project, madeUp{jobs: jobs})
	configuration["persia:nodePools"].([]object)[0]["nodes"] = 1 + count/15
	configuration["persia:cluster"].(object)["systemPool"] = object{"nodes": 2 + count/5}
	writeConfiguration(t, project, "madeup", configuration)
}

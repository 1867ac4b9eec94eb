package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/config/input"
	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/sandbox/toolchain"
)

// BenchmarkUp compares `up` with kubectl, which brings up the same Kubernetes objects on the same control
// plane with the same nodes, and measures the commands that change nothing. The goals are in
// docs/contribute/performance.md. -benchtime must be 1x.
func BenchmarkUp(b *testing.B) {
	compile(b, toolchain.OfBenchmarks)
	b.Run("prod", func(b *testing.B) { benchmarkUp(b, stackIn(b, b.TempDir(), "prod")) })
}

func benchmarkUp(b *testing.B, s *stack) {
	measure := func(unit string, do func()) float64 {
		started := time.Now()
		do()
		seconds := time.Since(started).Seconds()
		b.ReportMetric(seconds, unit)
		return seconds
	}
	up := func() { _, err := s.s.Up(b.Context()); require.NoError(b, err) }
	s.up() // makes the cluster and its nodes, too
	k := kubectlUp{b, s, b.TempDir()}
	k.write()
	pods := k.readyPods()

	k.remove()
	s.refresh()
	took := measure("up-s", up)
	measure("second-up-s", up)
	measure("second-preview-s", func() { _, _, err := preview(b, s.s); require.NoError(b, err) })
	k.remove()
	b.ReportMetric(took/measure("kubectl-s", func() { k.apply(pods) }), "up/kubectl")
	b.ReportMetric(0, "ns/op")
}

// kubectlUp brings up the objects of a stack with kubectl.
type kubectlUp struct {
	b *testing.B
	*stack
	dir string
}

// write writes a file for each step of kubectl's: definitions, namespaces, and all other objects. The names of some
// objects contain a hash of the stack's name, which differs here.
func (k kubectlUp) write() {
	k.b.Helper()
	file := input.StackFileName(k.name)
	stack := testkit.Must(input.ReadStackFile(os.DirFS(k.project), file, config.Namespace))(k.b)
	program := testkit.Must(programtest.Run(k.b, pulumi.RunInfo{Config: stack.Config.Decrypted().Texts(), RootDirectory: k.project}, nil))(k.b)
	files := map[string]*strings.Builder{"definitions": {}, "namespaces": {}, "others": {}}
	for _, registered := range program.Resources {
		if !registered.Inputs["kind"].IsString() || !registered.Inputs["apiVersion"].IsString() {
			continue
		}
		object := testkit.Object[map[string]any](k.b, registered)
		file := "others"
		switch object["kind"] {
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

func (k kubectlUp) kubectl(args ...string) {
	k.b.Helper()
	command := exec.CommandContext(k.b.Context(), tools.Path("kubectl"), args...)
	command.Dir, command.Env = k.dir, []string{"HOME=" + k.dir, "KUBECONFIG=" + k.s.Kubeconfig()}
	output, err := command.CombinedOutput()
	require.NoError(k.b, err, "kubectl %s\n%s", strings.Join(args, " "), output)
}

// remove deletes all objects, the pods of the namespaces with them.
func (k kubectlUp) remove() {
	k.b.Helper()
	for _, file := range []string{"others", "namespaces", "definitions"} {
		k.kubectl("delete", "--ignore-not-found", "--cascade=foreground", "-f", file+".yaml")
	}
}

// apply applies all objects, and waits until as many pods are ready as there were.
func (k kubectlUp) apply(pods int) {
	k.b.Helper()
	k.kubectl("apply", "-f", "definitions.yaml")
	k.kubectl("wait", "--for=condition=Established", "-f", "definitions.yaml")
	k.kubectl("apply", "-f", "namespaces.yaml")
	k.kubectl("apply", "-f", "others.yaml")
	await(k.b, func() bool { return k.readyPods() >= pods }, "%d pods are ready", pods)
}

func (k kubectlUp) readyPods() (ready int) {
	k.b.Helper()
	for _, pod := range k.pods(corev1.NamespaceAll, "") {
		if !readySince(pod).IsZero() {
			ready++
		}
	}
	return ready
}

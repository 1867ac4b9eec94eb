package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// alternative is a tool that users would use instead.
type alternative struct {
	name, title string
	// prepare writes the tool's files, and returns what runs it.
	prepare func(*testing.B, *workbench) (apply func(*testing.B))
}

var alternatives = []alternative{
	{"kubectl", "`kubectl apply`", prepareKubectl},
	{"helm", "`helm install --wait`", prepareHelm},
}

// prepareKubectl: what others need is applied first, and the kinds have to be served.
func prepareKubectl(b *testing.B, w *workbench) func(*testing.B) {
	c := newCommandLine(b, w)
	definitions, rest := w.definitions()
	c.write(b, "definitions.yaml", manifest(b, definitions))
	c.write(b, "objects.yaml", manifest(b, rest))
	return func(b *testing.B) {
		c.run(b, tools.Kubectl, "apply", "-f", "definitions.yaml")
		c.run(b, tools.Kubectl, "wait", "--for=condition=Established", "-f", "definitions.yaml")
		c.run(b, tools.Kubectl, "apply", "-f", "objects.yaml")
	}
}

// prepareHelm: a chart that has no values. The objects are one of its files, so that
// braces in them are no template's.
func prepareHelm(b *testing.B, w *workbench) func(*testing.B) {
	c := newCommandLine(b, w)
	definitions, rest := w.definitions()
	c.write(b, "chart/Chart.yaml", "apiVersion: v2\nname: stack\nversion: 1.0.0\n")
	c.write(b, "chart/crds/definitions.yaml", manifest(b, definitions))
	c.write(b, "chart/objects.yaml", manifest(b, rest))
	c.write(b, "chart/templates/objects.yaml", `{{ .Files.Get "objects.yaml" }}`)
	return func(b *testing.B) {
		c.run(b, tools.Helm, "install", "stack", "chart", "--wait", "--timeout", "15m")
	}
}

// definitions returns the CustomResourceDefinitions, and the other objects with the
// namespaces first.
func (w *workbench) definitions() (definitions, rest []*unstructured.Unstructured) {
	for _, object := range w.objects {
		switch object.GetKind() {
		case "CustomResourceDefinition":
			definitions = append(definitions, object)
		case "Namespace":
			rest = slices.Insert(rest, 0, object)
		default:
			rest = append(rest, object)
		}
	}
	return definitions, rest
}

// manifest is a file of objects as kubectl and Helm read it: JSON is YAML.
func manifest(b *testing.B, objects []*unstructured.Unstructured) string {
	b.Helper()
	var text strings.Builder
	for _, object := range objects {
		text.WriteString("---\n")
		require.NoError(b, json.NewEncoder(&text).Encode(object))
	}
	return text.String()
}

// commandLine is where a tool runs: a folder, and the environment of a user without any
// other settings.
type commandLine struct {
	dir string
	env []string
}

func newCommandLine(b *testing.B, w *workbench) commandLine {
	b.Helper()
	dir := b.TempDir()
	return commandLine{dir, []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + w.kubeconfig,
	}}
}

func (c commandLine) write(b *testing.B, name, text string) {
	b.Helper()
	path := filepath.Join(c.dir, name)
	require.NoError(b, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(b, os.WriteFile(path, []byte(text), 0o600))
}

// run runs a program to its end.
func (c commandLine) run(b *testing.B, program string, args ...string) {
	b.Helper()
	command := exec.CommandContext(b.Context(), program, args...)
	command.Dir, command.Env = c.dir, c.env
	output, err := command.CombinedOutput()
	require.NoError(b, err, "%s %s\n%s", filepath.Base(program), strings.Join(args, " "), lastLines(string(output), 30))
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

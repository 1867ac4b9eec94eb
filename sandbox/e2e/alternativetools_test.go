package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	// prepare writes the tool's files, and returns a function that runs it.
	prepare func(*testing.B, *workbench) (apply func(*testing.B))
}

var alternatives = []alternative{
	{"kubectl", "`kubectl apply`", prepareKubectl},
	{"helm", "`helm install --wait`", prepareHelm},
	{"terraform", "`terraform apply`", prepareTerraform},
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

// prepareTerraform: one configuration for the definitions and the namespaces, and one for
// the other objects, because the provider asks the API server for kinds, and tries objects
// of a kind without a schema, when it plans.
func prepareTerraform(b *testing.B, w *workbench) func(*testing.B) {
	c := newCommandLine(b, w)
	c.env = append(c.env, "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+filepath.Join(c.dir, "terraform.rc"))
	c.write(b, "terraform.rc", fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"hashicorp/kubernetes\" = %q\n  }\n}\n",
		filepath.Dir(tools.TerraformProviderKubernetes)))
	first, rest := w.definitions()
	namespaces := slices.IndexFunc(rest, func(o *unstructured.Unstructured) bool { return o.GetKind() != "Namespace" })
	c.write(b, "first/main.tf.json", terraformConfiguration(b, w, append(first, rest[:namespaces]...)))
	c.write(b, "rest/main.tf.json", terraformConfiguration(b, w, rest[namespaces:]))
	return func(b *testing.B) {
		for _, folder := range []string{"first", "rest"} {
			c.run(b, tools.Terraform, "-chdir="+folder, "apply", "-auto-approve", "-input=false", "-no-color")
		}
	}
}

// terraformConfiguration is Terraform's JSON syntax for objects.
func terraformConfiguration(b *testing.B, w *workbench, objects []*unstructured.Unstructured) string {
	b.Helper()
	manifests := map[string]any{}
	for i, o := range objects {
		manifest := o.DeepCopy().Object
		// The provider refuses what only the API server sets.
		unstructured.RemoveNestedField(manifest, "status")
		unstructured.RemoveNestedField(manifest, "metadata", "creationTimestamp")
		resource := map[string]any{"manifest": manifest}
		if o.GetKind() == "Job" { // the API server adds labels to its pods
			resource["computed_fields"] = []string{"metadata.annotations", "metadata.labels", "spec.template.metadata.labels"}
		}
		manifests[fmt.Sprintf("object%d", i)] = resource
	}
	text, err := json.Marshal(map[string]any{
		"terraform": map[string]any{"required_providers": map[string]any{"kubernetes": map[string]any{"source": "hashicorp/kubernetes"}}},
		"provider":  map[string]any{"kubernetes": map[string]any{"config_path": w.kubeconfig}},
		"resource":  map[string]any{"kubernetes_manifest": manifests},
	})
	require.NoError(b, err)
	// Strings are templates, and scripts in objects have variables of their own.
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(string(text))
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

// manifest returns a file of objects as kubectl and Helm read it: JSON is YAML.
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
	var complaints bytes.Buffer
	command.Stderr = &complaints
	err := command.Run()
	require.NoError(b, err, "%s %s\n%s", filepath.Base(program), strings.Join(args, " "), lastLines(complaints.String(), 30))
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

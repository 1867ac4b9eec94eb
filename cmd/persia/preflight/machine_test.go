package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// machine is a stand-in for the machine that runs preflight, with a project and a PATH on which
// scripts replace the commands.
type machine struct {
	t            *testing.T
	project, bin string
	home         string
}

// stackOf returns the smallest stack with a cluster.
func stackOf(cluster string) string {
	return `config:
  persia:project: my-project
  persia:cluster: ` + cluster + `
  persia:nodePools:
    - {name: gpu, machineType: g2-standard-32, nodes: 1, gpu: {type: nvidia-l4, count: 1}}
  persia:machineTypes: {}
  persia:nvidiaDriver: {installer: managed}
  persia:storage: []
  persia:nats: {size: 1, resources: {limits: {cpu: "1", memory: 2Gi}}}
  persia:jobs: []
`
}

// training is a job with upstream's images.
const training = `persia:jobs:
    - name: clicks
      nodePool: gpu
      persiaEnv: {PERSIA_GLOBAL_CONFIG: /a, PERSIA_EMBEDDING_CONFIG: /b, PERSIA_NN_WORKER_ENTRY: /c, PERSIA_DATALOADER_ENTRY: /d}
      nnWorker: {resources: {limits: {cpu: 1, memory: 1Gi}}}
      dataloader: {resources: {limits: {cpu: 1, memory: 1Gi}}}
      embeddingWorker: {resources: {limits: {cpu: 1, memory: 1Gi}}}
      embeddingParameterServer: {resources: {limits: {cpu: 1, memory: 1Gi}}}`

var created = stackOf(`{name: c, region: us-central1, zones: [us-central1-a], authorizedNetworks: [{name: office, cidr: 8.8.8.0/24}]}`)

// existing is a stack on a cluster that is there.
var existing = strings.Replace(stackOf(`{name: c, existing: {context: there, systemPool: gpu}}`),
	"  persia:project: my-project\n", "", 1)

// newMachine has everything that the stack of created needs.
func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, project: filepath.Join(dir, "project"), bin: filepath.Join(dir, "bin"), home: filepath.Join(dir, "home")}
	for _, variable := range append(providerVariables, "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "KUBECONFIG",
		"PULUMI_HOME", "PULUMI_BACKEND_URL", "PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE") {
		unsetenv(t, variable)
	}
	t.Setenv("PATH", m.bin)
	was := firmware
	t.Cleanup(func() { firmware = was })
	m.write("firmware", "Standard PC\n")
	firmware = filepath.Join(dir, "firmware")
	t.Setenv("HOME", m.home)
	m.write("project/Pulumi.yaml", "name: persia\nruntime: {name: go, options: {binary: bin/program}}\n")
	m.write("project/go.mod", `module persia

require (
	github.com/pulumi/pulumi-gcp/sdk/v7 v7.38.0
	github.com/pulumi/pulumi-kubernetes/sdk/v4 v4.30.0
	github.com/pulumi/pulumi/sdk/v3 v3.250.0
)
`)
	m.write("project/main.go", "package main\n")
	m.write("project/bin/program", "")
	m.stack(created)
	m.write("home/.config/gcloud/application_default_credentials.json", "{}")
	m.write("home/.pulumi/credentials.json", `{"current": "gs://state"}`)
	m.command("gke-gcloud-auth-plugin", "*", "")
	m.pulumi("version", "echo v3.251.1")
	m.pulumi("plugin ls", `echo '[{"name": "gcp", "kind": "resource", "version": "7.38.0", "size": 1},
		{"name": "kubernetes", "kind": "resource", "version": "4.30.0", "size": 1}]'`)
	m.pulumi("whoami", `echo '{"user": "ada", "url": "gs://state"}'`)
	m.stacks(0)
	m.prints("projects describe my-project", encoded(t, recorded(t, "projects.get", nil)))
	m.prints("compute regions describe us-central1", withQuotas(t, "regions.get", regionQuotas))
	m.prints("compute project-info describe", withQuotas(t, "projectInfo.get", projectQuotas))
	m.prints("compute machine-types describe", `{"name": "n"}`)
	m.prints("compute accelerator-types describe", `{"name": "n"}`)
	m.enabled(without())
	return m
}

func unsetenv(t *testing.T, variable string) {
	t.Setenv(variable, "") // so that it comes back
	require.NoError(t, os.Unsetenv(variable))
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	path := filepath.Join(filepath.Dir(m.project), name)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(m.t, os.WriteFile(path, []byte(text), 0o600))
}

func (m *machine) remove(name string) {
	m.t.Helper()
	require.NoError(m.t, os.RemoveAll(filepath.Join(filepath.Dir(m.project), name)))
}

func (m *machine) stack(text string) { m.write("project/Pulumi.dev.yaml", text) }

// command makes a command run a script if its arguments begin as given.
func (m *machine) command(name, arguments, script string) {
	m.t.Helper()
	m.write("scripts/"+name+"/"+arguments, script+"\n")
	// Each beginning has its own script, so that a test can replace one.
	dispatch := fmt.Sprintf(`#!/bin/sh
PATH=/usr/bin:/bin
for script in '%s'/*; do
	case "$* " in "${script##*/} "*) . "$script"; exit $?;; esac
done
echo "error: unknown command: $*" >&2
exit 64
`, filepath.Join(filepath.Dir(m.project), "scripts", name))
	if arguments == "*" {
		dispatch = "#!/bin/sh\n"
	}
	m.write("bin/"+name, dispatch)
	require.NoError(m.t, os.Chmod(filepath.Join(m.bin, name), 0o700))
}

func (m *machine) pulumi(arguments, script string) { m.command("pulumi", arguments, script) }
func (m *machine) gcloud(arguments, script string) { m.command("gcloud", arguments, script) }

// prints has gcloud print a text.
func (m *machine) prints(arguments, text string) {
	m.t.Helper()
	file := "printed/" + strings.ReplaceAll(arguments, " ", "-")
	m.write(file, text)
	m.gcloud(arguments, "cat "+filepath.Join(filepath.Dir(m.project), file))
}

func (m *machine) stacks(resources int) {
	m.pulumi("stack ls", fmt.Sprintf(`echo '[{"name": "dev", "current": true, "resourceCount": %d}]'`, resources))
}

// enabled makes gcloud list APIs as enabled.
func (m *machine) enabled(services []string) {
	var entries []string
	for _, name := range services {
		entries = append(entries, fmt.Sprintf(`{"config": {"name": %q, "title": "An API"}, "name": "projects/210987654321/services/%s", "state": "ENABLED"}`, name, name))
	}
	m.write("enabled.json", "["+strings.Join(entries, ",")+"]")
	m.gcloud("services list --enabled", "cat "+filepath.Join(filepath.Dir(m.project), "enabled.json"))
}

// without returns all APIs but some.
func without(excluded ...string) []string {
	var left []string
	for _, name := range names(allServices()) {
		if !strings.Contains(strings.Join(excluded, " "), name) {
			left = append(left, name)
		}
	}
	return left
}

func (m *machine) options() Options {
	return Options{Dir: m.project, Stack: "dev", Timeout: 20 * time.Second}
}

func (m *machine) run(options Options) []Check {
	m.t.Helper()
	checks, err := Run(m.t.Context(), options)
	require.NoError(m.t, err)
	return checks
}

// problems returns the checks that are not ok, a line each with status, name, detail and
// remedy.
func problems(checks []Check) string {
	var lines strings.Builder
	for _, c := range checks {
		if c.Status != OK {
			fmt.Fprintf(&lines, "%s %s: %s; %s\n", c.Status, c.Name, c.Detail, c.Remedy)
		}
	}
	return lines.String()
}

func has(checks []Check, name string) bool {
	for _, c := range checks {
		if c.Name == name {
			return true
		}
	}
	return false
}

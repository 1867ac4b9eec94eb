package preflight

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// machine is a stand-in for the machine that the preflight runs on: a project of
// its own, and a PATH with scripts in the place of the commands.
type machine struct {
	t            *testing.T
	project, bin string
	home         string
}

// stackOf is the smallest stack, with what it says of the cluster.
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

var created = stackOf(`{name: c, region: us-central1, zones: [us-central1-a], authorizedNetworks: [{name: office, cidr: 203.0.113.0/24}]}`)

// existing is a stack on a cluster that is there.
var existing = strings.Replace(stackOf(`{name: c, existing: {context: there, systemPool: gpu}}`),
	"  persia:project: my-project\n", "", 1)

// newMachine has everything that the stack of created needs.
func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, project: filepath.Join(dir, "project"), bin: filepath.Join(dir, "bin"), home: filepath.Join(dir, "home")}
	for _, variable := range append(credentialVariables, "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "KUBECONFIG",
		"PULUMI_HOME", "PULUMI_BACKEND_URL", "PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE") {
		unsetenv(t, variable)
	}
	t.Setenv("PATH", m.bin)
	t.Setenv("HOME", m.home)
	m.write("project/Pulumi.yaml", "name: persia\nruntime: {name: go, options: {binary: bin/persia}}\n")
	m.write("project/go.mod", `module persia

require (
	github.com/pulumi/pulumi-gcp/sdk/v7 v7.38.0
	github.com/pulumi/pulumi-kubernetes/sdk/v4 v4.30.0
	github.com/pulumi/pulumi/sdk/v3 v3.250.0
)
`)
	m.write("project/main.go", "package main\n")
	m.write("project/bin/persia", "")
	m.stack(created)
	m.write("home/.config/gcloud/application_default_credentials.json", "{}")
	m.write("home/.pulumi/credentials.json", `{"current": "gs://state"}`)
	m.command("gke-gcloud-auth-plugin", "*", "")
	m.pulumi("version", "echo v3.251.1")
	m.pulumi("plugin ls", `echo '[{"name": "gcp", "kind": "resource", "version": "7.38.0", "size": 1},
		{"name": "kubernetes", "kind": "resource", "version": "4.30.0", "size": 1}]'`)
	m.pulumi("whoami", `echo '{"user": "ada", "url": "gs://state"}'`)
	m.stacks(0)
	m.gcloud("projects describe my-project", "cat "+testdata(t, "project.json"))
	m.gcloud("compute regions describe us-central1", "cat "+testdata(t, "region.json"))
	m.gcloud("compute project-info describe", "cat "+testdata(t, "project-info.json"))
	m.enabled(without())
	return m
}

func testdata(t *testing.T, name string) string {
	path, err := filepath.Abs(filepath.Join("testdata", name))
	require.NoError(t, err)
	return path
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

// command has a command run a script where its arguments begin as given.
func (m *machine) command(name, arguments, script string) {
	m.t.Helper()
	m.write("scripts/"+name+"/"+arguments, script+"\n")
	// A script of its own for each beginning, so that a test can replace one.
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

func (m *machine) stacks(resources int) {
	m.pulumi("stack ls", fmt.Sprintf(`echo '[{"name": "dev", "current": true, "resourceCount": %d}]'`, resources))
}

// enabled has gcloud tell of APIs that are enabled.
func (m *machine) enabled(services []string) {
	var entries []string
	for _, name := range services {
		entries = append(entries, fmt.Sprintf(`{"config": {"name": %q, "title": "An API"}, "name": "projects/210987654321/services/%s", "state": "ENABLED"}`, name, name))
	}
	m.write("enabled.json", "["+strings.Join(entries, ",")+"]")
	m.gcloud("services list --enabled", "cat "+filepath.Join(filepath.Dir(m.project), "enabled.json"))
}

// without are all APIs but some.
func without(excluded ...string) []string {
	var left []string
	for _, name := range names(AllServices()) {
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

// problems are the checks that are not ok, a line each with status, name, detail and
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

// compiled is a Pulumi.yaml by which Pulumi compiles the program.
const compiled = "name: persia\nruntime: {name: go, options: {buildTarget: bin/persia}}\n"

func TestPulumiCompilesTheProgram(t *testing.T) {
	m := newMachine(t)
	m.write("project/Pulumi.yaml", compiled)
	m.remove("project/bin")
	m.command("go", "*", "")
	checks := m.run(m.options())
	assert.Empty(t, problems(checks))
	assert.Contains(t, checks, Check{Status: OK, Name: "program", Detail: "Pulumi compiles it"})
}

func TestAllWell(t *testing.T) {
	m := newMachine(t)
	checks := m.run(m.options())
	assert.Empty(t, problems(checks))
	assert.False(t, Failed(checks))
	for _, name := range []string{"stack file", "secrets", "control plane", "program", "pulumi CLI", "pulumi plugins", "pulumi login",
		"pulumi stack", "gcloud", authPlugin, "credentials", "project", "APIs", "quota NVIDIA_L4_GPUS", "quota GPUS_ALL_REGIONS"} {
		assert.True(t, has(checks, name), name)
	}
}

func has(checks []Check, name string) bool {
	for _, c := range checks {
		if c.Name == name {
			return true
		}
	}
	return false
}

func TestProblems(t *testing.T) {
	cases := map[string]struct {
		damage func(m *machine)
		status Status
		want   []string
	}{
		"no pulumi": {func(m *machine) { m.remove("bin/pulumi") }, Missing,
			[]string{"missing pulumi CLI: pulumi is not on the PATH; install it", "unchecked pulumi login", "unchecked pulumi stack"}},
		"an older pulumi": {func(m *machine) { m.pulumi("version", "echo v3.100.0") }, Warning,
			[]string{"warning pulumi CLI: v3.100.0, and the program is tested with v3.250.0; update it"}},
		"a pulumi of the last major version": {func(m *machine) { m.pulumi("version", "echo 2.9.1") }, Missing,
			[]string{"missing pulumi CLI: v2.9.1, and the program is made for v3.250.0; update it"}},
		"another plugin": {func(m *machine) {
			m.pulumi("plugin ls", `echo '[{"name": "gcp", "kind": "resource", "version": "7.37.0"}]'`)
		}, Warning, []string{
			"warning pulumi plugins: gcp v7.38.0 is not installed: the first `pulumi preview` downloads it; pulumi plugin install resource gcp v7.38.0",
			"warning pulumi plugins: kubernetes v4.30.0"}},
		"no login": {func(m *machine) { m.remove("home/.pulumi") }, Missing,
			[]string{"missing pulumi login: not logged in; pulumi login gs://BUCKET", "unchecked pulumi stack: not logged in"}},
		"a login that has ended": {func(m *machine) {
			m.pulumi("whoami", "echo 'error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions' >&2; exit 3")
		}, Missing, []string{"missing pulumi login: gs://state: PULUMI_ACCESS_TOKEN must be set", "unchecked pulumi stack"}},
		"a backend that does not answer": {func(m *machine) {
			m.pulumi("whoami", `echo 'Logging in using access token'; echo 'error: performing HTTP request: Get "https://api.pulumi.com/api/user": dial tcp: lookup api.pulumi.com: no such host' >&2; exit 1`)
		}, Unchecked, []string{"unchecked pulumi login: gs://state: performing HTTP request", "unchecked pulumi stack: gs://state did not answer"}},
		"no stack": {func(m *machine) { m.pulumi("stack ls", "echo '[]'") }, Missing,
			[]string{"missing pulumi stack: dev is not there; pulumi stack init dev"}},
		"no program": {func(m *machine) { m.remove("project/bin") }, Missing,
			[]string{"missing program: bin/persia, which Pulumi runs, is not there; make build"}},
		"an old program": {func(m *machine) {
			m.write("project/workload/launch.sh", "")
			later := time.Now().Add(time.Minute)
			require.NoError(m.t, os.Chtimes(filepath.Join(m.project, "workload/launch.sh"), later, later))
		}, Warning, []string{"warning program: bin/persia is older than workload/launch.sh, and Pulumi runs it as it is; make build"}},
		"no binary and no compiler": {func(m *machine) {
			m.write("project/Pulumi.yaml", compiled)
		}, Missing, []string{"missing program: go, with which Pulumi compiles it, is not on the PATH; install it"}},
		"no gcloud": {func(m *machine) { m.remove("bin/gcloud") }, Missing, []string{
			"missing gcloud: gcloud is not on the PATH; install it", "unchecked project: there is no gcloud",
			"unchecked APIs: there is no gcloud; needed: compute.googleapis.com, ", "unchecked quota NVIDIA_L4_GPUS: there is no gcloud; needed: 1, us-central1"}},
		"no auth plugin": {func(m *machine) { m.remove("bin/gke-gcloud-auth-plugin") }, Missing,
			[]string{"missing gke-gcloud-auth-plugin: it is not on the PATH", "gcloud components install gke-gcloud-auth-plugin"}},
		"credentials that are not there": {func(m *machine) { m.t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json") }, Missing,
			[]string{"missing credentials: GOOGLE_APPLICATION_CREDENTIALS names /nowhere/key.json, which is not there"}},
		"no network": {func(m *machine) {
			m.gcloud("projects describe my-project", `echo "ERROR: (gcloud.projects.describe) There was a problem refreshing your current auth tokens: HTTPSConnectionPool(host='oauth2.googleapis.com', port=443): Max retries exceeded with url: /token" >&2; exit 1`)
		}, Unchecked, []string{"unchecked project: (gcloud.projects.describe) There was a problem", "unchecked APIs: ", "unchecked quota CPUS: "}},
		"an answer of another kind": {func(m *machine) { m.gcloud("projects describe my-project", "echo projectId: my-project") }, Unchecked,
			[]string{"unchecked project: gcloud projects describe my-project printed what is not understood"}},
		"a key outside of the cluster": {func(m *machine) {
			m.stack(created + "  persia:cluster.region: europe-west4\n")
		}, Warning, []string{"warning stack file: persia:cluster.region is in the file, and the program does not read it; remove it"}},
		"nobody reaches the control plane": {func(m *machine) {
			m.stack(stackOf("{name: c, region: us-central1, zones: [us-central1-a]}"))
		}, Warning, []string{"warning control plane: persia:cluster.authorizedNetworks is empty"}},
		"a private control plane": {func(m *machine) {
			m.stack(stackOf("{name: c, region: us-central1, zones: [us-central1-a], privateEndpoint: true}"))
		}, Unchecked, []string{"unchecked control plane: persia:cluster.privateEndpoint is true"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			test.damage(m)
			checks := m.run(m.options())
			found := problems(checks)
			for _, want := range test.want {
				assert.Contains(t, found, want)
			}
			assert.Equal(t, test.status == Missing, Failed(checks), found)
			assert.Contains(t, found, string(test.status)+" ")
		})
	}
}

func TestNoCredentials(t *testing.T) {
	if onGoogleCloud() {
		t.Skip("this machine has a service account")
	}
	m := newMachine(t)
	m.remove("home/.config")
	assert.Equal(t, "missing credentials: there are no application-default credentials; gcloud auth application-default login\n",
		problems(m.run(m.options())))
}

func TestTimeout(t *testing.T) {
	m := newMachine(t)
	m.gcloud("projects describe my-project", "sleep 60")
	options := m.options()
	options.Timeout = 2 * time.Second
	started := time.Now()
	checks := m.run(options)
	assert.Less(t, time.Since(started), 30*time.Second, "one command waits, and those after it are not asked")
	assert.Contains(t, problems(checks), "unchecked project: gcloud projects describe my-project gave no answer within 2s")
	assert.False(t, Failed(checks))
}

func TestOffline(t *testing.T) {
	m := newMachine(t)
	for _, command := range []string{"projects describe my-project", "services list --enabled", "compute regions describe us-central1", "compute project-info describe"} {
		m.gcloud(command, "touch "+filepath.Join(m.project, "asked"))
	}
	m.pulumi("whoami", "touch "+filepath.Join(m.project, "asked"))
	options := m.options()
	options.Offline = true
	checks := m.run(options)
	assert.NoFileExists(t, filepath.Join(m.project, "asked"))
	assert.False(t, Failed(checks))
	found := problems(checks)
	for _, want := range []string{"unchecked pulumi login: offline: gs://state was not asked", "unchecked project: offline",
		"unchecked APIs: offline; needed: compute.googleapis.com", "unchecked quota CPUS: offline; needed: 40, us-central1"} {
		assert.Contains(t, found, want)
	}
	t.Run("state in a folder", func(t *testing.T) {
		t.Setenv("PULUMI_BACKEND_URL", "file:///state")
		m.pulumi("whoami", `echo '{"user": "ada", "url": "file:///state"}'`)
		assert.NotContains(t, problems(m.run(options)), "pulumi login")
	})
}

func TestQuotas(t *testing.T) {
	const asks = "ask for 3 of NVIDIA_L4_GPUS in us-central1 at https://console.cloud.google.com/iam-admin/quotas?project=my-project; it can take days"
	cases := map[string]struct {
		limit, usage string
		resources    int
		want         string
	}{
		"exactly enough": {"3.0", "2.0", 0, ""},
		"too small":      {"0.0", "0.0", 0, "missing quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 0, of which 0 used; ask for 1 of"},
		"used":           {"2.0", "2.0", 0, "missing quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 2, of which 2 used; " + asks},
		"used by the stack": {"2.0", "2.0", 70, "warning quota NVIDIA_L4_GPUS: 1 needed, us-central1: limit 2, of which 2 used; " +
			"part of that may be this stack's own; if it is not: " + asks},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.stacks(test.resources)
			text, err := os.ReadFile("testdata/region.json")
			require.NoError(t, err)
			const recorded = `{"limit": 1.0, "metric": "NVIDIA_L4_GPUS", "usage": 0.0}`
			require.Contains(t, string(text), recorded)
			m.write("region.json", strings.Replace(string(text), recorded,
				fmt.Sprintf(`{"limit": %s, "metric": "NVIDIA_L4_GPUS", "usage": %s}`, test.limit, test.usage), 1))
			m.gcloud("compute regions describe us-central1", "cat "+filepath.Join(filepath.Dir(m.project), "region.json"))
			found := problems(m.run(m.options()))
			if test.want == "" {
				assert.Empty(t, found)
			}
			assert.Contains(t, found, test.want)
		})
	}
	t.Run("not told", func(t *testing.T) {
		m := newMachine(t)
		m.stack(strings.ReplaceAll(created, "machineType: g2-standard-32, nodes: 1, gpu: {type: nvidia-l4, count: 1}", "machineType: c4-standard-8, nodes: 1"))
		assert.Contains(t, problems(m.run(m.options())), "unchecked quota CPUS_PER_VM_FAMILY (vm_family C4): gcloud does not tell it; needed: 8, us-central1")
	})
	t.Run("spot", func(t *testing.T) {
		m := newMachine(t)
		m.stack(strings.ReplaceAll(created, "nodes: 1, gpu", "nodes: 1, spot: true, gpu"))
		found := problems(m.run(m.options()))
		assert.Contains(t, found, "warning quota PREEMPTIBLE_CPUS: 32 needed, us-central1: limit 0, of which 0 used; without a quota of their own, spot machines count to the ordinary one")
	})
}

const aKubeconfig = `
current-context: there
contexts:
  - {name: there, context: {cluster: c, user: me}}
users:
  - name: me
    user: {exec: {command: gke-gcloud-auth-plugin, installHint: "Install it,\n  please"}}
`

func TestExistingCluster(t *testing.T) {
	m := newMachine(t)
	m.stack(existing)
	m.remove("bin/gcloud")
	m.remove("home/.config")
	t.Run("no context", func(t *testing.T) {
		found := problems(m.run(m.options()))
		assert.Contains(t, found, `missing kubeconfig: persia:cluster.existing.context: "there" is not in `+m.home+"/.kube/config, which has none; correct it")
	})
	m.write("home/.kube/config", aKubeconfig)
	t.Run("all well", func(t *testing.T) {
		checks := m.run(m.options())
		assert.Empty(t, problems(checks), "nothing of Google Cloud is asked")
		assert.False(t, has(checks, "gcloud"))
	})
	t.Run("several files", func(t *testing.T) {
		m.write("home/other", "contexts: [{name: elsewhere, context: {user: me}}]")
		t.Setenv("KUBECONFIG", filepath.Join(m.home, "other")+":"+filepath.Join(m.home, ".kube/config"))
		assert.Empty(t, problems(m.run(m.options())))
	})
	t.Run("no credential plugin", func(t *testing.T) {
		m.remove("bin/gke-gcloud-auth-plugin")
		assert.Equal(t, "missing gke-gcloud-auth-plugin: it is not on the PATH, and the context gets its credentials by it; Install it, please\n",
			problems(m.run(m.options())))
	})
	t.Run("a broken file", func(t *testing.T) {
		m.write("home/.kube/config", "contexts: {")
		assert.Contains(t, problems(m.run(m.options())), "missing kubeconfig: "+m.home+"/.kube/config: ")
	})
}

func TestSecrets(t *testing.T) {
	withUser := strings.Replace(created, "persia:nats: {size: 1,", "persia:nats: {size: 1, users: [{name: ada, password: {secure: v1:abc}}],", 1)
	const salt = "encryptionsalt: v1:salt\n"
	t.Run("no passphrase", func(t *testing.T) {
		m := newMachine(t)
		m.stack(salt + withUser)
		assert.Contains(t, problems(m.run(m.options())), "warning secrets: 1 encrypted value in Pulumi.dev.yaml, which a passphrase opens: Pulumi will ask for it")
		t.Setenv("PULUMI_CONFIG_PASSPHRASE_FILE", filepath.Join(m.home, "passphrase"))
		assert.Contains(t, problems(m.run(m.options())), "missing secrets: 1 encrypted value in Pulumi.dev.yaml, which a passphrase opens: PULUMI_CONFIG_PASSPHRASE_FILE names ")
		m.write("home/passphrase", "x")
		assert.Empty(t, problems(m.run(m.options())))
	})
	t.Run("a key of Cloud KMS", func(t *testing.T) {
		m := newMachine(t)
		m.stack("secretsprovider: gcpkms://projects/p\nencryptedkey: abc\n" + withUser)
		assert.Empty(t, problems(m.run(m.options())))
	})
	t.Run("the key of a certificate", func(t *testing.T) {
		m := newMachine(t)
		m.stack(strings.Replace(created, "persia:nats: {size: 1,", "persia:nats: {size: 1, tls: {clients: {ca: a, certificate: b, key: {secure: v1:abc}}},", 1))
		assert.Equal(t, "unchecked stack file: persia:nats.tls: a key is encrypted, so that only `pulumi preview` can check the certificates; \n",
			problems(m.run(m.options())))
	})
}

func TestStackFilesThatCannotBeRead(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no YAML": {"config: {", "Pulumi.dev.yaml: "},
		"a password in plain text": {strings.Replace(created, "persia:nats: {size: 1,", "persia:nats: {size: 1, users: [{name: ada, password: open-sesame}],", 1),
			"Pulumi.dev.yaml: stack configuration: 1 problem\npersia:nats.users[0].password: is in plain text"},
		"a mistake":      {strings.Replace(created, "nodes: 1", "nodes: -1", 1), "Pulumi.dev.yaml: stack configuration: 1 problem\npersia:nodePools[0].nodes: "},
		"an environment": {"environment: [shared]\nconfig: {persia:project: my-project}", "its environment may have more"},
		"too few keys":   {"config: {persia:project: my-project}", "persia:jobs: Required value"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.stack(test.text)
			_, err := Run(t.Context(), m.options())
			assert.ErrorContains(t, err, test.want)
		})
	}
	t.Run("no file", func(t *testing.T) {
		m := newMachine(t)
		options := m.options()
		options.Stack = "prod"
		_, err := Run(t.Context(), options)
		assert.ErrorContains(t, err, `there is no stack "prod"`)
		assert.ErrorContains(t, err, "there are dev")
	})
}

func TestPrint(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, Print(&text, []Check{
		missing("program", "it is not there", "make build"),
		ok("gcloud", "on the PATH"),
		unchecked("project", "offline"),
		warning("stack file", "is odd", ""),
	}))
	assert.Equal(t, `ok         gcloud      on the PATH
unchecked  project     offline
warning    stack file  is odd
missing    program     it is not there

What to do:

  missing: program
      make build

missing: 1, warning: 1, unchecked: 1, ok: 1
`, text.String())
}

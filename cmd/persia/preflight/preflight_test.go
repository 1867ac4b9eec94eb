package preflight

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/gcp"
	"persia/internal/testkit"
)

// compiled is a Pulumi.yaml with which Pulumi compiles the program.
const compiled = "name: persia\nruntime: {name: go, options: {buildTarget: bin/program}}\n"

func TestPulumiCompilesTheProgram(t *testing.T) {
	m := newMachine(t)
	m.write("project/Pulumi.yaml", compiled)
	m.remove("project/bin")
	m.command("go", "*", "")
	checks := m.run(m.options())
	assert.Empty(t, problems(checks))
	assert.Contains(t, checks, Check{Status: OK, Name: "program", Detail: "Pulumi compiles the program"})
}

func TestAllWell(t *testing.T) {
	m := newMachine(t)
	checks := m.run(m.options())
	assert.Empty(t, problems(checks))
	assert.False(t, Failed(checks))
	for _, name := range []string{"stack file", "secrets", "control plane", "program", "pulumi CLI", "pulumi plugins", "pulumi login",
		"pulumi stack", "gcloud", gcp.AuthPlugin, "credentials", "project", "APIs", "quota NVIDIA_L4_GPUS", "quota GPUS_ALL_REGIONS", "machine e2-standard-4", "machine g2-standard-32"} {
		assert.True(t, has(checks, name), name)
	}
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
			[]string{"warning pulumi CLI: v3.100.0, but the program is tested with v3.250.0; update it"}},
		"a pulumi of the last major version": {func(m *machine) { m.pulumi("version", "echo 2.9.1") }, Missing,
			[]string{"missing pulumi CLI: v2.9.1, but the program requires v3.250.0; update it"}},
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
			[]string{"missing pulumi stack: dev does not exist; pulumi stack init dev"}},
		"no program": {func(m *machine) { m.remove("project/bin") }, Missing,
			[]string{"missing program: bin/program, which Pulumi runs, does not exist; make build"}},
		"an old program": {func(m *machine) {
			m.write("project/workload/launch.sh", "")
			later := time.Now().Add(time.Minute)
			require.NoError(m.t, os.Chtimes(filepath.Join(m.project, "workload/launch.sh"), later, later))
		}, Warning, []string{"warning program: bin/program is older than workload/launch.sh, and Pulumi runs it without compiling it; make build"}},
		"no binary and no compiler": {func(m *machine) {
			m.write("project/Pulumi.yaml", compiled)
		}, Missing, []string{"missing program: Pulumi compiles the program with go, which is not on the PATH; install it"}},
		"no gcloud": {func(m *machine) { m.remove("bin/gcloud") }, Missing, []string{
			"missing gcloud: gcloud is not on the PATH; install it", "unchecked project: gcloud is not installed",
			"unchecked APIs: gcloud is not installed; needed: compute.googleapis.com, ", "unchecked quota NVIDIA_L4_GPUS: gcloud is not installed; needed: 1, us-central1"}},
		"no auth plugin": {func(m *machine) { m.remove("bin/gke-gcloud-auth-plugin") }, Missing,
			[]string{"missing gke-gcloud-auth-plugin: it is not on the PATH", "gcloud components install gke-gcloud-auth-plugin"}},
		"credentials that are not there": {func(m *machine) { m.t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json") }, Missing,
			[]string{"missing credentials: GOOGLE_APPLICATION_CREDENTIALS is /nowhere/key.json, which does not exist"}},
		"no network": {func(m *machine) {
			m.gcloud("projects describe my-project", `echo "ERROR: (gcloud.projects.describe) There was a problem refreshing your current auth tokens: HTTPSConnectionPool(host='oauth2.googleapis.com', port=443): Max retries exceeded with url: /token" >&2; exit 1`)
		}, Unchecked, []string{"unchecked project: (gcloud.projects.describe) There was a problem", "unchecked APIs: ", "unchecked quota CPUS: "}},
		"an answer of another kind": {func(m *machine) { m.gcloud("projects describe my-project", "echo projectId: my-project") }, Unchecked,
			[]string{"unchecked project: gcloud projects describe my-project printed unexpected output"}},
		"nobody reaches the control plane": {func(m *machine) {
			m.stack(stackOf("{name: c, region: us-central1, zones: [us-central1-a]}"))
		}, Warning, []string{"warning control plane: persia:cluster.authorizedNetworks is empty"}},
		"images without a digest": {func(m *machine) {
			m.stack(strings.Replace(created, "persia:jobs: []", training, 1))
		}, Warning, []string{"warning images: the tag of nnWorker, dataloader, embeddingWorker, embeddingParameterServer of clicks is latest"}},
		"images without a digest in a stack without deletionProtection": {func(m *machine) {
			stack := strings.Replace(created, "region:", "deletionProtection: false, region:", 1)
			m.stack(strings.Replace(stack, "persia:jobs: []", training, 1))
		}, Warning, []string{"warning images: the tag of nnWorker, dataloader, embeddingWorker, embeddingParameterServer of clicks is latest"}},
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

func TestMachineOfGoogle(t *testing.T) {
	m := newMachine(t)
	m.remove("home/.config")
	m.write("firmware", "Google Compute Engine\n")
	assert.Empty(t, problems(m.run(m.options())), "the machine has a service account")
}

// noCredentials removes the application-default credentials.
func noCredentials(m *machine) {
	m.remove("home/.config")
}

func TestCredentials(t *testing.T) {
	const (
		unread = " is set, but gke-gcloud-auth-plugin does not read it: Pulumi would create the cluster and no object in it; there are no application-default credentials; "
		remedy = ", and set GOOGLE_APPLICATION_CREDENTIALS to the path of a credentials file, or run gcloud auth application-default login\n"
	)
	cases := map[string]struct {
		damage func(m *machine)
		want   func(m *machine) string
	}{
		"none": {noCredentials, func(*machine) string {
			return "missing credentials: there are no application-default credentials; gcloud auth application-default login\n"
		}},
		"in gcloud's own folder": {func(m *machine) {
			noCredentials(m)
			m.write("home/cloudsdk/application_default_credentials.json", "{}")
			m.t.Setenv("CLOUDSDK_CONFIG", filepath.Join(m.home, "cloudsdk"))
		}, func(m *machine) string {
			file := m.home + "/cloudsdk/application_default_credentials.json"
			return "missing credentials: " + file + " is where only gcloud looks, because CLOUDSDK_CONFIG is set; export GOOGLE_APPLICATION_CREDENTIALS=" + file + "\n"
		}},
		"two accounts": {func(m *machine) { m.t.Setenv("GOOGLE_CREDENTIALS", "{}") }, func(m *machine) string {
			return "warning credentials: Pulumi reaches Google Cloud with GOOGLE_CREDENTIALS, and the cluster with other credentials: " +
				m.home + "/.config/gcloud/application_default_credentials.json; unset GOOGLE_CREDENTIALS, or make sure that both belong to the same account\n"
		}},
	}
	for _, key := range []string{"gcp:credentials", "gcp:accessToken", "gcp:impersonateServiceAccount"} {
		cases[key+" alone"] = struct {
			damage func(m *machine)
			want   func(m *machine) string
		}{func(m *machine) {
			noCredentials(m)
			m.stack(strings.Replace(created, "config:\n", "config:\n  "+key+": value\n", 1))
		}, func(*machine) string {
			return "missing credentials: " + key + unread + "unset " + key + remedy
		}}
	}
	for _, variable := range []string{"GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"} {
		cases[variable+" alone"] = struct {
			damage func(m *machine)
			want   func(m *machine) string
		}{func(m *machine) {
			noCredentials(m)
			m.t.Setenv(variable, "{}")
		}, func(*machine) string {
			return "missing credentials: " + variable + unread + "unset " + variable + remedy
		}}
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			test.damage(m)
			assert.Equal(t, test.want(m), problems(m.run(m.options())))
		})
	}
}

func TestTimeout(t *testing.T) {
	testkit.Processes(t)
	m := newMachine(t)
	m.gcloud("projects describe my-project", "sleep 60")
	options := m.options()
	options.Timeout = 2 * time.Second
	started := time.Now()
	checks := m.run(options)
	assert.Less(t, time.Since(started), 30*time.Second, "one command waits, and those after it are not asked")
	assert.Contains(t, problems(checks), "unchecked project: gcloud projects describe my-project did not answer within 2s")
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
	for _, want := range []string{"unchecked pulumi login: offline: gs://state was not contacted", "unchecked project: offline",
		"unchecked APIs: offline; needed: compute.googleapis.com", "unchecked quota CPUS: offline; needed: 44, us-central1"} {
		assert.Contains(t, found, want)
	}
	t.Run("state in a folder", func(t *testing.T) {
		t.Setenv("PULUMI_BACKEND_URL", "file:///state")
		m.pulumi("whoami", `echo '{"user": "ada", "url": "file:///state"}'`)
		assert.NotContains(t, problems(m.run(options)), "pulumi login")
	})
}

func TestStackFilesThatCannotBeRead(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no YAML": {"config: {", "Pulumi.dev.yaml: "},
		"a password in plain text": {strings.Replace(created, "persia:nats: {size: 1,", "persia:nats: {size: 1, users: [{name: ada, password: open-sesame}],", 1),
			"Pulumi.dev.yaml: stack configuration: 1 problem\npersia:nats.users[0].password: is in plain text"},
		"a mistake":        {strings.Replace(created, "nodes: 1", "nodes: -1", 1), "Pulumi.dev.yaml: stack configuration: 1 problem\npersia:nodePools[0].nodes: "},
		"a field as a key": {created + "  persia:cluster.region: europe-west4\n", "persia:cluster.region: unknown key"},
		"an environment":   {"environment: [shared]\nconfig: {persia:project: my-project}", "environment may set more"},
		"too few keys":     {"config: {persia:project: my-project}", "persia:jobs: Required value"},
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

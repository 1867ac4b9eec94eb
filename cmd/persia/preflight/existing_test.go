package preflight

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
	m.remove("home/.config")
	t.Run("no context", func(t *testing.T) {
		found := problems(m.run(m.options()))
		assert.Contains(t, found, `missing kubeconfig: persia:cluster.existing.context: "there" is not in `+m.home+"/.kube/config, which contains none; correct it")
	})
	m.write("home/.kube/config", aKubeconfig)
	t.Run("all well", func(t *testing.T) {
		checks := m.run(m.options())
		assert.Empty(t, problems(checks), "nothing of Google Cloud is asked")
		assert.False(t, has(checks, projectName))
	})
	t.Run("several files", func(t *testing.T) {
		m.write("home/other", "contexts: [{name: elsewhere, context: {user: me}}]")
		t.Setenv("KUBECONFIG", filepath.Join(m.home, "other")+":"+filepath.Join(m.home, ".kube/config"))
		assert.Empty(t, problems(m.run(m.options())))
	})
	t.Run("no credential plugin", func(t *testing.T) {
		m.remove("bin/gke-gcloud-auth-plugin")
		assert.Equal(t, "missing gke-gcloud-auth-plugin: it is not on the PATH, and the context needs it to get credentials; Install it, please\n",
			problems(m.run(m.options())))
	})
	t.Run("a broken file", func(t *testing.T) {
		m.write("home/.kube/config", "contexts: {")
		assert.Contains(t, problems(m.run(m.options())), "missing kubeconfig: "+m.home+"/.kube/config: ")
	})
}

// TestCredentialsOfContext checks contexts whose credential plugin uses other credentials than the
// available ones.
func TestCredentialsOfContext(t *testing.T) {
	const byDefault = `["--use_application_default_credentials"]`
	cases := map[string]struct {
		args   string
		damage func(m *machine)
		want   string
	}{
		"the login of gcloud": {"[]", func(m *machine) { m.remove("home/.config") }, ""},
		"no gcloud": {"[]", func(m *machine) { m.remove("bin/gcloud") },
			"missing credentials: gke-gcloud-auth-plugin asks gcloud for credentials, which is not on the PATH; install it: https://cloud.google.com/sdk/docs/install\n"},
		"a key for the provider, and the login of gcloud": {"[]", func(m *machine) { m.t.Setenv("GOOGLE_CREDENTIALS", "{}") },
			"warning credentials: GOOGLE_CREDENTIALS does not reach the cluster: gke-gcloud-auth-plugin uses the account that gcloud is logged in with; make sure that `gcloud auth list` shows the right account as active\n"},
		"default credentials":         {byDefault, func(m *machine) { m.remove("bin/gcloud") }, ""},
		"default credentials refused": {`["--use_application_default_credentials=false"]`, func(m *machine) { m.remove("home/.config") }, ""},
		"no default credentials": {`["-use_application_default_credentials=true"]`, noCredentials,
			"missing credentials: there are no application-default credentials; gcloud auth application-default login\n"},
		"a key for the provider alone": {byDefault, func(m *machine) {
			noCredentials(m)
			m.t.Setenv("GOOGLE_CREDENTIALS", "{}")
		}, "missing credentials: GOOGLE_CREDENTIALS is set, but gke-gcloud-auth-plugin does not read it"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.stack(existing)
			m.write("home/.kube/config", strings.Replace(aKubeconfig, "command: gke-gcloud-auth-plugin,", "command: gke-gcloud-auth-plugin, args: "+test.args+",", 1))
			test.damage(m)
			found := problems(m.run(m.options()))
			assert.Contains(t, found, test.want)
			assert.Equal(t, test.want == "", found == "", found)
		})
	}
}

package preflight

import (
	"path/filepath"
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
	m.remove("bin/gcloud")
	m.remove("home/.config")
	t.Run("no context", func(t *testing.T) {
		found := problems(m.run(m.options()))
		assert.Contains(t, found, `missing kubeconfig: persia:cluster.existing.context: "there" is not in `+m.home+"/.kube/config, which contains none; correct it")
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
		assert.Equal(t, "missing gke-gcloud-auth-plugin: it is not on the PATH, and the context needs it to get credentials; Install it, please\n",
			problems(m.run(m.options())))
	})
	t.Run("a broken file", func(t *testing.T) {
		m.write("home/.kube/config", "contexts: {")
		assert.Contains(t, problems(m.run(m.options())), "missing kubeconfig: "+m.home+"/.kube/config: ")
	})
}

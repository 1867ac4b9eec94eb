package kubeprovider

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func kubeconfigFor(server, token string) string {
	return `
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "` + server + `"}}]
users: [{name: u, user: {token: "` + token + `"}}]
`
}

func TestDiffConfig(t *testing.T) {
	text := resource.NewProperty[string]
	unknown := resource.MakeComputed(text(""))
	here := text(kubeconfigFor("https://127.0.0.1", "a"))
	hereAgain := text(kubeconfigFor("https://127.0.0.1", "b"))
	elsewhere := text(kubeconfigFor("https://127.0.0.2", "a"))

	tests := map[string]struct {
		before, after resource.PropertyMap
		want          plugin.DiffChanges
		replace       []resource.PropertyKey
	}{
		"no change": {
			resource.PropertyMap{"kubeconfig": here}, resource.PropertyMap{"kubeconfig": here}, plugin.DiffNone, nil,
		},
		"another user of the same server": {
			resource.PropertyMap{"kubeconfig": here}, resource.PropertyMap{"kubeconfig": hereAgain}, plugin.DiffSome, nil,
		},
		"another server": {
			resource.PropertyMap{"kubeconfig": here}, resource.PropertyMap{"kubeconfig": elsewhere},
			plugin.DiffSome, []resource.PropertyKey{"kubeconfig"},
		},
		"a kubeconfig that is not known yet": {
			resource.PropertyMap{"kubeconfig": here}, resource.PropertyMap{"kubeconfig": unknown},
			plugin.DiffSome, []resource.PropertyKey{"kubeconfig"},
		},
		"a kubeconfig that is not known yet, of the same identifier": {
			resource.PropertyMap{"kubeconfig": here, "clusterIdentifier": text("a")},
			resource.PropertyMap{"kubeconfig": unknown, "clusterIdentifier": text("a")}, plugin.DiffSome, nil,
		},
		"another identifier": {
			resource.PropertyMap{"kubeconfig": here, "clusterIdentifier": text("a")},
			resource.PropertyMap{"kubeconfig": here, "clusterIdentifier": text("b")},
			plugin.DiffSome, []resource.PropertyKey{"clusterIdentifier"},
		},
		"the same identifier at another server": {
			resource.PropertyMap{"kubeconfig": here, "clusterIdentifier": text("a")},
			resource.PropertyMap{"kubeconfig": elsewhere, "clusterIdentifier": text("a")}, plugin.DiffSome, nil,
		},
		"an identifier that is not known yet": {
			resource.PropertyMap{"kubeconfig": here, "clusterIdentifier": text("a")},
			resource.PropertyMap{"kubeconfig": here, "clusterIdentifier": unknown}, plugin.DiffSome, nil,
		},
		"an identifier where there was none": {
			resource.PropertyMap{"kubeconfig": here},
			resource.PropertyMap{"kubeconfig": here, "clusterIdentifier": text("a")}, plugin.DiffSome, nil,
		},
		"an identifier where there was none, at another server": {
			resource.PropertyMap{"kubeconfig": here},
			resource.PropertyMap{"kubeconfig": elsewhere, "clusterIdentifier": text("a")},
			plugin.DiffSome, []resource.PropertyKey{"kubeconfig"},
		},
		"an option": {
			resource.PropertyMap{"kubeconfig": here},
			resource.PropertyMap{"kubeconfig": here, "enableConfigMapMutable": text("true")}, plugin.DiffSome, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			diff, err := New("4.30.0", "").DiffConfig(t.Context(), plugin.DiffConfigRequest{
				OldInputs: test.before, NewInputs: test.after,
			})
			require.NoError(t, err)
			assert.Equal(t, test.want, diff.Changes)
			assert.Equal(t, test.replace, diff.ReplaceKeys)
		})
	}
}

func TestCheckConfig(t *testing.T) {
	text := resource.NewProperty[string]
	kubeconfig := text(kubeconfigFor("https://127.0.0.1", "a"))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfigFor("https://127.0.0.1", "a")), 0o600))
	tests := map[string]struct {
		inputs resource.PropertyMap
		want   string // part of the one failure, empty for none
	}{
		"a kubeconfig":                  {resource.PropertyMap{"kubeconfig": kubeconfig}, ""},
		"the path of one":               {resource.PropertyMap{"kubeconfig": text(path)}, ""},
		"the path of none":              {resource.PropertyMap{"kubeconfig": text(path + "2")}, "no such file"},
		"a context that is not there":   {resource.PropertyMap{"kubeconfig": kubeconfig, "context": text("other")}, "other"},
		"a server elsewhere":            {resource.PropertyMap{"kubeconfig": text(kubeconfigFor("https://203.0.113.7", "a"))}, "outside this machine"},
		"one that is not known yet":     {resource.PropertyMap{"kubeconfig": resource.MakeComputed(text(""))}, ""},
		"options of the official one":   {resource.PropertyMap{"kubeconfig": kubeconfig, "enableServerSideApply": text("true")}, ""},
		"none":                          {resource.PropertyMap{}, "kubeconfig is required"},
		"one that is no kubeconfig":     {resource.PropertyMap{"kubeconfig": text("server: [")}, "kubeconfig: "},
		"a flag that is no boolean":     {resource.PropertyMap{"kubeconfig": kubeconfig, "enableSecretMutable": text("yes")}, "neither true nor false"},
		"rendering instead of applying": {resource.PropertyMap{"kubeconfig": kubeconfig, "renderYamlToDirectory": text("out")}, "does not render"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			resp, err := New("4.30.0", "").CheckConfig(t.Context(), plugin.CheckConfigRequest{News: test.inputs})
			require.NoError(t, err)
			assert.Equal(t, test.inputs, resp.Properties)
			if test.want == "" {
				assert.Empty(t, resp.Failures)
				return
			}
			require.Len(t, resp.Failures, 1)
			assert.Contains(t, resp.Failures[0].Reason, test.want)
		})
	}
}

// TestCredentialPlugins: providers of several sandboxes in one process run different
// plugins of the same name.
func TestCredentialPlugins(t *testing.T) {
	const name = "gke-gcloud-auth-plugin"
	own := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(own, name), nil, 0o700))
	for name, test := range map[string]struct{ plugins, command, want string }{
		"own":          {own, name, filepath.Join(own, name)},
		"another's":    {own, "aws", "aws"},
		"by its path":  {own, "/usr/bin/" + name, "/usr/bin/" + name},
		"no own ones":  {"", name, name},
		"empty folder": {t.TempDir(), name, name},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, New("4.30.0", test.plugins).pluginPath(test.command))
		})
	}
}

package kubeprovider

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

func kubeconfigFor(server string) resource.PropertyValue {
	return resource.NewProperty(`
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "` + server + `"}}]
users: [{name: u, user: {token: t}}]
`)
}

func TestDiffConfig(t *testing.T) {
	text := resource.NewProperty[string]
	here, elsewhere := kubeconfigFor("https://127.0.0.1"), kubeconfigFor("https://127.0.0.2")
	of := func(kubeconfig, identifier resource.PropertyValue) resource.PropertyMap {
		return resource.PropertyMap{"kubeconfig": kubeconfig, clusterIdentifier: identifier}
	}
	for name, test := range map[string]struct {
		after   resource.PropertyMap
		replace []resource.PropertyKey
	}{
		"another kubeconfig of the same cluster": {of(elsewhere, text("a")), nil},
		"another cluster":                        {of(here, text("b")), []resource.PropertyKey{clusterIdentifier}},
	} {
		t.Run(name, func(t *testing.T) {
			diff, err := New("4.30.0", "").DiffConfig(t.Context(), plugin.DiffConfigRequest{OldInputs: of(here, text("a")), NewInputs: test.after})
			require.NoError(t, err)
			assert.Equal(t, plugin.DiffSome, diff.Changes)
			assert.Equal(t, test.replace, diff.ReplaceKeys)
		})
	}
}

func TestCheckConfig(t *testing.T) {
	text := resource.NewProperty[string]
	kubeconfig := kubeconfigFor("https://127.0.0.1")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig.StringValue()), 0o600))
	null := resource.NewNullProperty()
	for name, test := range map[string]struct {
		inputs resource.PropertyMap
		want   string // part of the one failure, empty for none
	}{
		"a kubeconfig":                 {nil, ""},
		"the path of one":              {resource.PropertyMap{"kubeconfig": text(path)}, ""},
		"one that is not known yet":    {resource.PropertyMap{"kubeconfig": resource.MakeComputed(text(""))}, ""},
		"the path of none":             {resource.PropertyMap{"kubeconfig": text(path + "2")}, "no such file"},
		"a context that is not there":  {resource.PropertyMap{"context": text("other")}, "other"},
		"a server elsewhere":           {resource.PropertyMap{"kubeconfig": kubeconfigFor("https://203.0.113.7")}, "outside this machine"},
		"none":                         {resource.PropertyMap{"kubeconfig": null}, "kubeconfig is required"},
		"no identifier":                {resource.PropertyMap{clusterIdentifier: null}, "clusterIdentifier is required"},
		"updates without force":        {resource.PropertyMap{enablePatchForce: null}, "enablePatchForce is required"},
		"an option that is not served": {resource.PropertyMap{"renderYamlToDirectory": text("out")}, "renderYamlToDirectory"},
	} {
		t.Run(name, func(t *testing.T) {
			inputs := resource.PropertyMap{"kubeconfig": kubeconfig, clusterIdentifier: text("a"), enablePatchForce: text("true")}
			maps.Copy(inputs, test.inputs)
			resp := testkit.Must(New("4.30.0", "").CheckConfig(t.Context(), plugin.CheckConfigRequest{News: inputs}))(t)
			assertFailure(t, resp.Failures, test.want)
		})
	}
}

func assertFailure(t *testing.T, failures []plugin.CheckFailure, want string) {
	t.Helper()
	if want == "" {
		assert.Empty(t, failures)
		return
	}
	require.Len(t, failures, 1)
	assert.Contains(t, failures[0].Reason, want)
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		token  tokens.Type
		inputs string
		want   string // part of the one failure, empty for none
	}{
		"a custom resource":          {"kubernetes:nats.io/v1alpha2:NatsCluster", `{apiVersion: nats.io/v1alpha2, kind: NatsCluster, metadata: {name: a}}`, ""},
		"a name to be made up":       {"kubernetes:core/v1:ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: x-}}`, "metadata.name is required"},
		"no object":                  {"kubernetes:helm.sh/v3:Release", `{chart: nats}`, "kubernetes:helm.sh/v3:Release"},
		"a patch":                    {"kubernetes:core/v1:ConfigMapPatch", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, "kubernetes:core/v1:ConfigMapPatch"},
		"a wait that cannot be read": {"kubernetes:core/v1:ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {pulumi.com/waitFor: Ready}}}`, "pulumi.com/waitFor"},
	} {
		t.Run(name, func(t *testing.T) {
			resp := testkit.Must(New("4.30.0", "").Check(t.Context(), plugin.CheckRequest{Type: test.token, News: properties(t, test.inputs)}))(t)
			assertFailure(t, resp.Failures, test.want)
		})
	}
	unknown := resource.PropertyMap{"apiVersion": resource.NewProperty("v1"), "kind": resource.NewProperty("ConfigMap"),
		"metadata": resource.NewProperty(resource.PropertyMap{"name": resource.MakeComputed(resource.NewProperty(""))})}
	resp := testkit.Must(New("4.30.0", "").Check(t.Context(), plugin.CheckRequest{Type: "kubernetes:core/v1:ConfigMap", News: unknown}))(t)
	assert.Empty(t, resp.Failures, "a name that is not known yet")
}

// TestCredentialPlugins: providers of several sandboxes in one process run different plugins of the same name.
func TestCredentialPlugins(t *testing.T) {
	const name = "gke-gcloud-auth-plugin"
	own := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(own, name), nil, 0o700))
	assert.Equal(t, filepath.Join(own, name), New("4.30.0", own).pluginPath(name))
	assert.Equal(t, "aws", New("4.30.0", own).pluginPath("aws"))
	assert.Equal(t, name, New("4.30.0", "").pluginPath(name))
}

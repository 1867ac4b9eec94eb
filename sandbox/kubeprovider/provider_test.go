package kubeprovider

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func urnOf(token tokens.Type) resource.URN {
	return resource.NewURN("dev", "persia", "", token, "thing")
}

func TestCheck(t *testing.T) {
	named := map[string]any{"name": "settings"}
	tests := map[string]struct {
		token  tokens.Type
		inputs map[string]any
		want   string // part of the one failure, empty for none
	}{
		"a named object": {
			"kubernetes:core/v1:ConfigMap",
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}, "",
		},
		"a custom resource": {
			"kubernetes:nats.io/v1alpha2:NatsCluster",
			map[string]any{"apiVersion": "nats.io/v1alpha2", "kind": "NatsCluster", "metadata": named}, "",
		},
		"a name that is not known yet": {
			"kubernetes:core/v1:ConfigMap",
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": resource.Computed{Element: resource.NewProperty("")},
			}}, "",
		},
		"no name": {
			"kubernetes:core/v1:ConfigMap",
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "metadata.name is required",
		},
		"a name to be made up": {
			"kubernetes:core/v1:ConfigMap",
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "x-"}},
			"metadata.name is required",
		},
		"no kind": {
			"kubernetes:helm.sh/v3:Release", map[string]any{"chart": "nats"}, "kubernetes:helm.sh/v3:Release",
		},
		"a patch": {
			"kubernetes:core/v1:ConfigMapPatch",
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}, "kubernetes:core/v1:ConfigMapPatch",
		},
		"a wait that cannot be read": {
			"kubernetes:core/v1:ConfigMap",
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": "settings", "annotations": map[string]any{"pulumi.com/waitFor": "Ready"},
			}}, "pulumi.com/waitFor",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inputs := resource.NewPropertyMapFromMap(test.inputs)
			resp, err := New("4.30.0", "").Check(t.Context(), plugin.CheckRequest{
				URN: urnOf(test.token), Type: test.token, News: inputs,
			})
			require.NoError(t, err)
			assert.Equal(t, inputs, resp.Properties)
			if test.want == "" {
				assert.Empty(t, resp.Failures)
				return
			}
			require.Len(t, resp.Failures, 1)
			assert.Contains(t, resp.Failures[0].Reason, test.want)
			assert.Contains(t, resp.Failures[0].Reason, string(urnOf(test.token)))
		})
	}
}

func TestWhatIsNoObjectIsRefusedByItsToken(t *testing.T) {
	p := New("4.30.0", "")
	_, err := p.Invoke(t.Context(), plugin.InvokeRequest{Tok: "kubernetes:yaml:decode"})
	assert.ErrorContains(t, err, "kubernetes:yaml:decode")
	_, err = p.Construct(t.Context(), plugin.ConstructRequest{Type: "kubernetes:yaml/v2:ConfigFile"})
	assert.ErrorContains(t, err, "kubernetes:yaml/v2:ConfigFile")
	_, err = p.Call(t.Context(), plugin.CallRequest{Tok: "kubernetes:x:Y/z"})
	assert.ErrorContains(t, err, "kubernetes:x:Y/z")
}

func TestGVKOfToken(t *testing.T) {
	tests := map[tokens.Type][2]string{
		"kubernetes:core/v1:Namespace":                        {"v1", "Namespace"},
		"kubernetes:apps/v1:StatefulSet":                      {"apps/v1", "StatefulSet"},
		"kubernetes:rbac.authorization.k8s.io/v1:ClusterRole": {"rbac.authorization.k8s.io/v1", "ClusterRole"},
	}
	for token, want := range tests {
		apiVersion, kind := gvkOfToken(token)
		assert.Equal(t, want, [2]string{apiVersion, kind}, token)
	}
}

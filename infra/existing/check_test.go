package existing

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config/clusterspec"
)

const policyPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/persia-pods"

// TestHoldsOneStack: a cluster holds one stack, of a Kubernetes that has admission policies.
func TestHoldsOneStack(t *testing.T) {
	release := func(minor string) any {
		return map[string]any{"major": "1", "minor": minor, "gitVersion": "v1." + minor + ".4-gke.100"}
	}
	holds := func(annotations map[string]any) any {
		return map[string]any{"metadata": map[string]any{"name": "persia-pods", "annotations": annotations}}
	}
	of := func(stack string) any { return holds(map[string]any{"persia.com/stack": stack}) }
	for name, test := range map[string]struct {
		answers map[string]any
		status  int // where there is no answer
		says    []string
		unknown bool
	}{
		"empty":                {answers: map[string]any{"/version": release("34")}},
		"this stack":           {answers: map[string]any{"/version": release("30+"), policyPath: of("acme/persia/dev")}},
		"another stack":        {answers: map[string]any{"/version": release("34"), policyPath: of("acme/persia/prod")}, says: []string{"the cluster shared holds the stack acme/persia/prod", "kubectl annotate --overwrite validatingadmissionpolicy persia-pods persia.com/stack=acme/persia/dev"}},
		"another organization": {answers: map[string]any{"/version": release("34"), policyPath: of("other/persia/dev")}, says: []string{"other/persia/dev"}},
		"a stack without name": {answers: map[string]any{"/version": release("34"), policyPath: holds(nil)}, says: []string{"that does not give its name"}},
		"an old release":       {answers: map[string]any{"/version": release("29+")}, says: []string{"runs Kubernetes v1.29+.4-gke.100", "1.30 or later", "upgrade"}},
		"no right to look":     {answers: map[string]any{"/version": release("34")}, status: http.StatusForbidden, says: []string{"403"}, unknown: true},
		"no answer at all":     {status: http.StatusServiceUnavailable, says: []string{"503"}, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if answer, ok := test.answers[r.URL.Path]; ok {
					assert.NoError(t, json.NewEncoder(w).Encode(answer))
					return
				}
				http.Error(w, "no", cmp.Or(test.status, http.StatusNotFound))
			}))
			defer server.Close()
			err := Check(t.Context(), cluster(t, server.URL), "acme/persia/dev")
			if test.says == nil {
				assert.NoError(t, err)
				return
			}
			for _, text := range test.says {
				assert.ErrorContains(t, err, text)
			}
			assert.Equal(t, test.unknown, errors.Is(err, ErrUnknown))
		})
	}
}

// TestCheckUnreachable: what the provider says of a cluster that it does not reach is
// better than a refusal.
func TestCheckUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	assert.ErrorIs(t, Check(t.Context(), cluster(t, url), "acme/persia/dev"), ErrUnknown)
	nowhere := clusterspec.Cluster{Name: "shared", Existing: &clusterspec.Existing{Kubeconfig: filepath.Join(t.TempDir(), "none")}}
	assert.ErrorIs(t, Check(t.Context(), nowhere, "acme/persia/dev"), ErrUnknown)
}

// cluster returns a cluster whose kubeconfig has two contexts; the second leads to url.
func cluster(t *testing.T, url string) clusterspec.Cluster {
	t.Helper()
	named := func(name, field string, value any) any { return map[string]any{"name": name, field: value} }
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "other",
		"clusters": []any{named("other", "cluster", map[string]any{"server": "http://127.0.0.1:1"}), named("shared", "cluster", map[string]any{"server": url})},
		"users":    []any{named("me", "user", map[string]any{"token": "t"})},
		"contexts": []any{
			named("other", "context", map[string]any{"cluster": "other", "user": "me"}),
			named("shared", "context", map[string]any{"cluster": "shared", "user": "me"}),
		},
	})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return clusterspec.Cluster{Name: "shared", Existing: &clusterspec.Existing{Kubeconfig: path, Context: "shared"}}
}

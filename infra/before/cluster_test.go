package before

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/internal/testkit"
)

const policyPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/persia-pods"

const policy resource.URN = "urn:pulumi:dev::persia::kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy::persia-pods"

var thisStack = State{ID: ID{"acme", "persia", "dev", "shared"}}

// TestHoldsOneStack: a cluster holds one stack.
func TestHoldsOneStack(t *testing.T) {
	holds := func(annotations map[string]any) any {
		return map[string]any{"metadata": map[string]any{"name": "persia-pods", "annotations": annotations}}
	}
	of := func(stack string) any { return holds(map[string]any{"persia.com/stack": stack}) }
	for name, test := range map[string]struct {
		answers map[string]any
		status  int // where there is no answer
		created bool
		says    []string
		unknown bool
	}{
		"empty":                {answers: map[string]any{}},
		"this stack":           {answers: map[string]any{policyPath: of("acme/persia/dev@shared")}, created: true},
		"its name elsewhere":   {answers: map[string]any{policyPath: of("acme/persia/dev@shared")}, says: []string{"it holds the stack acme/persia/dev@shared already, and the state does not have that"}, unknown: true},
		"another stack":        {answers: map[string]any{policyPath: of("acme/persia/prod")}, says: []string{"the cluster shared holds the stack acme/persia/prod", "kubectl annotate --overwrite validatingadmissionpolicy persia-pods persia.com/stack=acme/persia/dev@shared"}},
		"another organization": {answers: map[string]any{policyPath: of("other/persia/dev")}, says: []string{"other/persia/dev"}},
		"a stack without name": {answers: map[string]any{policyPath: holds(nil)}, says: []string{"that does not give its name"}},
		"no right to look":     {answers: map[string]any{}, status: http.StatusForbidden, says: []string{"persia-pods: Forbidden"}, unknown: true},
		"no answer at all":     {status: http.StatusServiceUnavailable, says: []string{"Service Unavailable"}, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			state := thisStack
			if test.created {
				state.Resources = map[resource.URN]map[string]any{policy: {"metadata": map[string]any{"annotations": map[string]any{"persia.com/stack": "acme/persia/dev@shared"}}}}
			}
			err := CheckCluster(t.Context(), cluster(t, answering(t, test.answers, test.status)), state)
			assert.Equal(t, test.says == nil, err == nil, "%v", err)
			for _, text := range test.says {
				assert.ErrorContains(t, err, text)
			}
			assert.Equal(t, test.unknown, errors.Is(err, ErrUnknown))
		})
	}
}

// answering starts an API server with some answers, and a status for everything else: 404 unless given.
func answering(t *testing.T, answers map[string]any, status int) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, ok := answers[r.URL.Path]; ok {
			assert.NoError(t, json.NewEncoder(w).Encode(answer))
			return
		}
		code := cmp.Or(status, http.StatusNotFound)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		assert.NoError(t, json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: metav1.StatusFailure, Code: int32(code), Message: http.StatusText(code)}))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestCheckQueues: the Kueue of a cluster must admit JobSets, and stop those that hold nodes in vain.
func TestCheckQueues(t *testing.T) {
	const (
		webhooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
		settings = "/api/v1/namespaces/queues/configmaps"
	)
	calls := func(path string) any {
		return map[string]any{"items": []any{map[string]any{"webhooks": []any{map[string]any{
			"name": "m", "clientConfig": map[string]any{"service": map[string]any{"namespace": "queues", "name": "webhooks", "path": path}},
		}}}}}
	}
	configured := func(text string) any {
		return map[string]any{"items": []any{
			map[string]any{"data": map[string]any{"ca.crt": "-----BEGIN"}},
			map[string]any{"data": map[string]any{"controller_manager_config.yaml": text}},
		}}
	}
	const endless = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nintegrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset]}"
	const ofJobSets = endless + "\nwaitForPodsReady: {enable: true, timeout: 10m}"
	const ofJobs = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nintegrations: {frameworks: [batch/job]}"
	all := func(text string) map[string]any {
		return map[string]any{webhooks: calls("/mutate-kueue-x-k8s-io-v1beta2-workload"), settings: configured(text)}
	}
	without := func(path string) map[string]any {
		answers := all(ofJobSets)
		delete(answers, path)
		return answers
	}
	for name, test := range map[string]struct {
		answers map[string]any
		status  int
		says    string
		unknown bool
	}{
		"admits JobSets":    {answers: all(ofJobSets)},
		"admits Jobs alone": {answers: all(ofJobs), says: "has a Kueue that does not admit JobSets; add jobset.x-k8s.io/jobset to integrations.frameworks"},
		"holds nodes":       {answers: all(endless), says: "has a Kueue that never stops an admitted job whose replicas do not all run, which holds its nodes without end; write waitForPodsReady in its configuration"},
		"is told not to":    {answers: all(endless + "\nwaitForPodsReady: {enable: false}"), says: "never stops an admitted job"},
		"gives up":          {answers: all(endless + "\nwaitForPodsReady: {timeout: 10m, requeuingStrategy: {backoffLimitCount: 5}}"), says: "gives up a job that it has stopped several times, until a person activates it; remove waitForPodsReady.requeuingStrategy.backoffLimitCount"},
		"no right to look":  {answers: without(settings), status: http.StatusForbidden, says: "configmaps: Forbidden", unknown: true},
		"no configuration":  {answers: all("a: b"), says: "the namespace queues has no configuration of Kueue", unknown: true},
		"no webhook":        {answers: map[string]any{webhooks: calls("/other")}, says: "no webhook of Kueue is there", unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckQueues(t.Context(), cluster(t, answering(t, test.answers, test.status)))
			testkit.Fails(t, err, test.says)
			assert.Equal(t, test.unknown, errors.Is(err, ErrUnknown))
		})
	}
}

// TestCheckUnreachable checks that an unreachable cluster leads to the provider's own error.
func TestCheckUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	assert.ErrorIs(t, CheckCluster(t.Context(), cluster(t, url), thisStack), ErrUnknown)
	nowhere := config.Cluster{Name: "shared", Existing: &config.ExistingCluster{Kubeconfig: filepath.Join(t.TempDir(), "none")}}
	assert.ErrorIs(t, CheckCluster(t.Context(), nowhere, thisStack), ErrUnknown)
}

// cluster returns a cluster whose kubeconfig has two contexts; the second leads to url.
func cluster(t *testing.T, url string) config.Cluster {
	t.Helper()
	named := func(name, field string, value any) any { return map[string]any{"name": name, field: value} }
	text := testkit.Must(yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "other",
		"clusters": []any{named("other", "cluster", map[string]any{"server": "http://127.0.0.1:1"}), named("shared", "cluster", map[string]any{"server": url})},
		"users":    []any{named("me", "user", map[string]any{"token": "t"})},
		"contexts": []any{
			named("other", "context", map[string]any{"cluster": "other", "user": "me"}),
			named("shared", "context", map[string]any{"cluster": "shared", "user": "me"}),
		},
	}))(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return config.Cluster{Name: "shared", Existing: &config.ExistingCluster{Kubeconfig: path, Context: "shared"}}
}

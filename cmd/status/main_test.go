package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pods are a replica that no node of its pool holds.
const pods = `{"items": [{"metadata": {"namespace": "persia", "name": "clicks-nn-worker-0",
		"labels": {"persia_job": "clicks", "app.kubernetes.io/name": "nn-worker"}},
		"spec": {"nodeSelector": {"cloud.google.com/gke-nodepool": "gpu"}},
		"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]}}]}`

// lists are the answers of an API server by path. It has no other paths.
var lists = map[string]string{
	"/apis/batch/v1/jobs": `{"items": [{"metadata": {"namespace": "persia", "name": "clicks-completion-1",
		"labels": {"persia_job": "clicks", "app.kubernetes.io/name": "completion"}}}]}`,
	"/api/v1/pods":                   pods,
	"/api/v1/namespaces/persia/pods": pods,
	"/api/v1/namespaces/persia/events": `{"items": [{"involvedObject": {"kind": "Pod", "name": "clicks-nn-worker-0"}, "type": "Normal",
		"reason": "NotTriggerScaleUp", "message": "pod didn't trigger scale-up: 1 max node group size reached"}]}`,
	"/api/v1/namespaces/nats-io/pods": `{"items": []}`,
}

// TestRunStatus runs the program with kubeconfigs of an API server.
func TestRunStatus(t *testing.T) {
	jobs, empty := lists["/apis/batch/v1/jobs"], `{"items": []}`
	for name, c := range map[string]struct {
		jobs         string
		args         []string
		code         int
		says, errors string
	}{
		"a job that waits": {jobs: jobs, says: `
job clicks: 0 of 1 pods are ready
  pool is full: clicks-nn-worker-0: NotTriggerScaleUp: pod didn't trigger scale-up: 1 max node group size reached
    next: pulumi config get --path persia:nodePools   # increase maxNodes of gpu, and run pulumi up
`},
		"no job":              {jobs: empty, says: "no training job reports its completion"},
		"another context":     {jobs: jobs, args: []string{"--context", "other"}, code: 1, errors: `status: context "other" does not exist`},
		"no such kubeconfig":  {jobs: jobs, args: []string{"--kubeconfig", "nowhere"}, code: 1, errors: "status: "},
		"help":                {jobs: jobs, args: []string{"--help"}, errors: "Usage: status"},
		"no such flag":        {jobs: jobs, args: []string{"--stack", "dev"}, code: 2, errors: "flag provided but not defined: -stack"},
		"an API server's 403": {jobs: "", code: 1, errors: "status: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text := lists[r.URL.Path]
				if strings.HasSuffix(r.URL.Path, "/jobs") {
					text = c.jobs
				}
				w.Header().Set("Content-Type", "application/json")
				switch {
				case text != "":
					_, err := fmt.Fprint(w, text)
					assert.NoError(t, err)
				case strings.HasSuffix(r.URL.Path, "/jobs"):
					w.WriteHeader(http.StatusForbidden)
				default:
					w.WriteHeader(http.StatusNotFound)
					assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404}))
				}
			}))
			defer server.Close()
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"clusters": [{"name": "c", "cluster": {"server": %q}}],
				"contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`, server.URL), 0o600))
			t.Setenv("KUBECONFIG", kubeconfig)
			var stdout, stderr strings.Builder
			assert.Equal(t, c.code, run(t.Context(), c.args, &stdout, &stderr), stderr.String())
			assert.Contains(t, stdout.String(), c.says)
			assert.Contains(t, stderr.String(), c.errors)
		})
	}
}

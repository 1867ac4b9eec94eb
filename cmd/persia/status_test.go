package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// pods are a replica that no node of its pool holds.
const pods = `{"items": [{"metadata": {"namespace": "persia", "name": "clicks-nn-worker-0",
		"labels": {"persia_job": "clicks", "app.kubernetes.io/name": "nn-worker"}},
		"spec": {"nodeSelector": {"cloud.google.com/gke-nodepool": "gpu"}},
		"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]}}]}`

// running are the pods of a job that trains.
const running = `{"items": [
	{"metadata": {"namespace": "persia", "name": "clicks-nn-worker-0", "labels": {"persia_job": "clicks", "app.kubernetes.io/name": "nn-worker", "apps.kubernetes.io/pod-index": "0"}},
		"spec": {"nodeName": "a"}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
	{"metadata": {"namespace": "persia", "name": "clicks-completion-1-a", "labels": {"persia_job": "clicks", "app.kubernetes.io/name": "completion"},
		"ownerReferences": [{"uid": "7", "controller": true}]},
		"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}]}`

// lists are the answers of an API server by path. It has no other paths.
var lists = map[string]string{
	"/apis/batch/v1/jobs": `{"items": [{"metadata": {"namespace": "persia", "name": "clicks-completion-1", "uid": "7",
		"annotations": {"persia.com/contract": "{\"version\": 1, \"useful\": \"98%\"}"}, "labels": {"persia_job": "clicks", "app.kubernetes.io/name": "completion"}}}]}`,
	"/api/v1/pods":               pods,
	"/apis/apps/v1/statefulsets": `{"items": []}`,
	"/apis/apps/v1/deployments":  `{"items": []}`,
	"/api/v1/nodes": `{"items": [{"metadata": {"name": "a", "labels": {
		"node.kubernetes.io/instance-type": "e2-standard-4", "topology.kubernetes.io/region": "us-central1"}}}]}`,
	"/api/v1/namespaces/persia/events": `{"items": [{"involvedObject": {"kind": "Pod", "name": "clicks-nn-worker-0"}, "type": "Normal",
		"reason": "NotTriggerScaleUp", "message": "pod didn't trigger scale-up: 1 max node group size reached"}]}`,
	"/api/v1/namespaces/nats-io/pods": `{"items": []}`,
	"/api":                            `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis":                           `{"kind": "APIGroupList", "groups": [{"name": "apps"}, {"name": "batch"}]}`,
}

// ended returns jobs that have ended.
func ended(jobs, condition string) string {
	return strings.Replace(jobs, "}}}]}", `}}, "status": {"conditions": [{"type": "`+condition+`", "status": "True"}]}}]}`, 1)
}

// TestStatus runs the program with kubeconfigs of an API server.
func TestStatus(t *testing.T) {
	jobs, empty := lists["/apis/batch/v1/jobs"], `{"items": []}`
	const older = "running attempt 3: 0 of 1 nn-workers and 0 of 1 dataloaders have finished"
	var answers map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(testkit.Read(t, "../../workload/persia/testdata/answers.json")), &answers))
	for name, c := range map[string]struct {
		jobs, pods string
		// answer is the last line of the completion, or its name in testdata.
		answer       string
		args         []string
		forbidden    string
		code         int
		says, errors string
	}{
		"a job that waits": {jobs: jobs, says: `
job clicks: 0 of 1 pods are ready
  pool is full: clicks-nn-worker-0: NotTriggerScaleUp: pod didn't trigger scale-up: 1 max node group size reached
    next: pulumi config get --path persia:nodePools   # increase maxNodes of gpu, and run pulumi up
`},
		"a job that trains": {jobs: jobs, pods: running, answer: "it trains, and has a checkpoint and a folder that is none", says: `
job clicks: running attempt 1: 0 of 1 nn-workers and 0 of 1 dataloaders have finished; /volume/run/attempt-1/b is no checkpoint: s0 has 1 of 2 files
  last checkpoint: /volume/run/attempt-1/a, 2m0s ago
  time: useful 12 % of 0.3 h: waiting 0 min, starting 2 min, training again 0 min, saving 13 min; 0 failures; checkpointSeconds: 780
    the rest has cost 0.03 USD on its nodes
    the plan expected: useful 98%
`},
		"a coordinator of an older release": {jobs: jobs, pods: running, answer: older, says: older + "\n  the coordinator is of an older release of this program: run `pulumi up`"},
		"a user with read access":           {jobs: jobs, forbidden: "/api/v1/nodes", says: "  next: pulumi config get --path persia:nodePools   # increase maxNodes of gpu, and run pulumi up\n\nYou may not read the nodes, so this is not all.\n"},
		"json":                              {jobs: jobs, pods: running, answer: "it trains, and has a checkpoint and a folder that is none", args: []string{"-o", "json"}, says: `"phase": "running",`},
		"json of a job that waits":          {jobs: jobs, args: []string{"--output", "json"}, says: `"cause": "pool is full",`},
		"another format":                    {jobs: jobs, args: []string{"-o", "yaml"}, code: 2, errors: `bin/persia status: invalid argument "yaml" for "-o, --output" flag: write text or json`},
		"a log that cannot be read":         {jobs: jobs, pods: running, says: "job clicks: 1 of 1 pods are ready\n"},
		"no job":                            {jobs: empty, says: "all have engine: operator and are suspended or have restartPolicy: Always"},
		"another context":                   {jobs: jobs, args: []string{"--context", "other"}, code: 1, errors: `bin/persia status: context "other" does not exist`},
		"no such kubeconfig":                {jobs: jobs, args: []string{"--kubeconfig", "nowhere"}, code: 1, errors: "bin/persia status: "},
		"help":                              {jobs: jobs, args: []string{"--help"}, says: "bin/persia status [flags]"},
		"no such flag":                      {jobs: jobs, args: []string{"--stack", "dev"}, code: 2, errors: "unknown flag: --stack"},
		"an API server's 403":               {jobs: "", code: 1, errors: "bin/persia status: "},
		"a wait for a job that is complete": {jobs: ended(jobs, "Complete"), args: []string{"--wait", "clicks"}, says: "complete\n"},
		"a wait for a job that has failed":  {jobs: ended(jobs, "Failed"), args: []string{"--wait", "clicks"}, code: 1, errors: "bin/persia status: the training job clicks has failed"},
		"a wait without an answer":          {jobs: "", args: []string{"--wait", "clicks"}, code: 3, errors: "bin/persia status: how the job goes on is unknown"},
		"a wait for no job":                 {jobs: ended(jobs, "Complete"), args: []string{"--wait", "views"}, code: 3, errors: "bin/persia status: how the job goes on is unknown: no training job views reports its completion"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text := lists[r.URL.Path]
				if strings.HasSuffix(r.URL.Path, "/jobs") {
					text = c.jobs
				}
				if text == pods && c.pods != "" {
					text = c.pods
				}
				if strings.HasSuffix(r.URL.Path, "/log") {
					assert.Equal(t, "tailLines=1", r.URL.RawQuery)
					text = cmp.Or(string(answers[c.answer]), c.answer)
				}
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == c.forbidden:
					w.WriteHeader(http.StatusForbidden)
				case strings.Contains(r.URL.Path, "kueue"):
					assert.Fail(t, "it asks a Kueue that is not there")
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
			assert.Equal(t, c.code, run(t.Context(), append([]string{"status"}, c.args...), &stdout, &stderr), stderr.String())
			assert.Contains(t, stdout.String(), c.says)
			if strings.HasPrefix(stdout.String(), "{") {
				assertSchema(t, "status", stdout.String())
			}
			assert.Contains(t, stderr.String(), c.errors)
		})
	}
}

var outputSchema, _ = filepath.Abs("../../docs/reference/output.schema.json")

// assertSchema checks the output of a command against the schema that users have.
func assertSchema(t *testing.T, command, output string) {
	t.Helper()
	schema := testkit.Must(jsonschema.NewCompiler().Compile(outputSchema + "#/$defs/" + command))(t)
	assert.NoError(t, schema.Validate(testkit.Must(jsonschema.UnmarshalJSON(strings.NewReader(output)))(t)), output)
}

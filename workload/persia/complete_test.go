package persia

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"

	"persia/config"
	"persia/internal/testkit"
	"persia/kube"
)

// TestCompletionSpec checks which changes replace the Job of a completion.
func TestCompletionSpec(t *testing.T) {
	changed := func(change func(*JobArgs)) *batchv1.Job {
		job := config.Job{Name: "criteo", RunID: "1", NNWorker: config.NNWorker{Role: config.Role{Replicas: 8}}}
		args := JobArgs{Job: job, SystemPlacement: kube.Placement{NodeSelector: map[string]string{"pool": "system"}}}
		change(&args)
		names := namesOf(args.Job)
		return completion(args, names, rolesOf(args, names), "")
	}
	same := text(changed(func(*JobArgs) {}).Spec)
	for what, test := range map[string]struct {
		change  func(*JobArgs)
		another bool
	}{
		"nothing":                      {func(*JobArgs) {}, false},
		"a suspended job":              {func(a *JobArgs) { a.Job.Suspend = true }, false},
		"other dataloaders":            {func(a *JobArgs) { a.Job.Dataloader.Replicas = 7 }, true},
		"another number of nn-workers": {func(a *JobArgs) { a.Job.NNWorker.Replicas = 9 }, true},
		"another run":                  {func(a *JobArgs) { a.Job.RunID = "2" }, true},
		"another place":                {func(a *JobArgs) { a.SystemPlacement.NodeSelector = nil }, true},
	} {
		t.Run(what, func(t *testing.T) { assert.Equal(t, test.another, text(changed(test.change).Spec) != same) })
	}
	assert.Len(t, changed(func(a *JobArgs) { a.Job.Name = strings.Repeat("j", 63) }).Name, 63)
}

// complete returns the script with an account at an API server.
func complete(t *testing.T, api *httptest.Server) *exec.Cmd {
	t.Helper()
	testkit.Processes(t)
	account := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, text := range map[string][]byte{"token": []byte("token\n"), "ca.crt": authority} {
		require.NoError(t, os.WriteFile(filepath.Join(account, name), text, 0o600))
	}
	at := testkit.Must(url.Parse(api.URL))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	process := exec.CommandContext(ctx, "python3", "-c", operatedCompleteScript)
	process.Env = []string{
		"PATH=" + os.Getenv("PATH"), "PERSIA_ACCOUNT_DIR=" + account, "PERSIA_POLL_SECONDS=0.02", "PERSIA_END_SECONDS=0.2",
		"KUBERNETES_SERVICE_HOST=" + at.Hostname(), "KUBERNETES_SERVICE_PORT=" + at.Port(),
		"PERSIA_NAMESPACE=persia", "PERSIA_JOB=clicks", "PERSIA_REPLICAS=dataloader=1,embedding-worker=1,embedding-ps=1,nn-worker=2",
	}
	return process
}

// TestCompleteAsksAgain while there is no answer, and ends with the status of the job.
func TestCompleteAsksAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/v1/namespaces/persia/pods?labelSelector=persia_job%3Dclicks", r.URL.String())
		assert.Equal(t, "Bearer token", r.Header.Get("Authorization"))
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusForbidden)
		case 2:
			_, _ = w.Write([]byte("no JSON"))
		case 3:
			// The end of this answer never comes.
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("ten bytes."))
		default:
			_, _ = w.Write([]byte(`{"items": [{"metadata": {"name": "clicks-nn-worker-0", "creationTimestamp": "2099-01-01T00:00:00Z"}, "status": {"phase": "Failed"}}]}`))
		}
	}))
	t.Cleanup(api.Close)
	said, err := complete(t, api).Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, FailedStatus, exit.ExitCode())
	assert.Contains(t, string(said), "the API server does not answer: HTTP Error 403")
	assert.Contains(t, string(said), "the API server does not answer: IncompleteRead(10 bytes read, 90 more expected)")
	assert.True(t, strings.HasSuffix(string(said), "\nfailed: clicks-nn-worker-0 failed: Kubernetes does not say why\n"), "%s", said)
}

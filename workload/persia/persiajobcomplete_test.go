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

	"persia/internal/testkit"
)

// complete returns the script with an account at an API server.
func complete(t *testing.T, api *httptest.Server) *exec.Cmd {
	t.Helper()
	testkit.Processes(t)
	account := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, text := range map[string][]byte{"token": []byte("token\n"), "ca.crt": authority} {
		require.NoError(t, os.WriteFile(filepath.Join(account, name), text, 0o600))
	}
	at, err := url.Parse(api.URL)
	require.NoError(t, err)
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

package persia

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const finishedMetric = "/metrics/job/criteo/run/1/role/nn-worker/replica/0"

// reportsTo is the environment of a replica that reports often.
func reportsTo(address string) []string {
	return []string{"PERSIA_METRICS_GATEWAY_ADDR=" + address, "PERSIA_FINISHED_METRIC=" + finishedMetric, "PERSIA_REPORT_SECONDS=0.1"}
}

// gateway stands in for a Pushgateway. What it is asked, it writes down.
func gateway(t *testing.T, answer int) (address string, requests <-chan string) {
	t.Helper()
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(answer)
		select {
		case asked <- r.Method + " " + r.URL.Path + "\n" + string(body):
		default:
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), asked
}

// received waits for a request.
func received(t *testing.T, requests <-chan string) string {
	t.Helper()
	select {
	case request := <-requests:
		return request
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is reported")
		return ""
	}
}

// TestLaunchReports: a replica reports that it has finished, again and again, also in
// another pod.
func TestLaunchReports(t *testing.T) {
	t.Parallel()
	address, requests := gateway(t, http.StatusOK)
	dir := t.TempDir()
	for range 2 {
		l := start(t, dir, `exit 0`, reportsTo(address)...)
		for range 3 {
			assert.Equal(t, "PUT "+finishedMetric+"\n# TYPE persia_replica_finished gauge\npersia_replica_finished 1\n", received(t, requests))
		}
		l.stop()
		assert.Zero(t, l.status())
		assert.Zero(t, l.said("cannot be told"))
	}
}

func TestLaunchReportsNoFailure(t *testing.T) {
	address, requests := gateway(t, http.StatusOK)
	l := start(t, t.TempDir(), `exit 1`, reportsTo(address)...)
	assert.Equal(t, 1, l.status())
	assert.Empty(t, requests)
}

// TestLaunchComplainsOnce: not with every report that fails.
func TestLaunchComplainsOnce(t *testing.T) {
	t.Parallel()
	address, requests := gateway(t, http.StatusBadRequest)
	l := start(t, t.TempDir(), `exit 0`, reportsTo(address)...)
	for range 4 {
		received(t, requests)
	}
	l.stop()
	assert.Zero(t, l.status())
	assert.Equal(t, 1, l.said("the metrics gateway at "+address+" cannot be told"))
}

// TestLaunchWithoutGateway: a gateway that does not do its work harms nobody.
func TestLaunchWithoutGateway(t *testing.T) {
	t.Parallel()
	// It is closed as soon as its address is known.
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	// Connections are made, and nobody takes them.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })

	for name, address := range map[string]string{
		"nobody there":           gone.Addr().String(),
		"an unknown name":        "no-such-host.invalid:9091",
		"one that never answers": silent.Addr().String(),
		"no address":             "gateway",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, t.TempDir(), `exit 0`, reportsTo(address)...)
			l.says("the metrics gateway at " + address + " cannot be told")
			stopped := time.Now()
			l.stop()
			assert.Zero(t, l.status())
			assert.Less(t, time.Since(stopped), 5*time.Second)
			assert.FileExists(t, l.finished)
		})
	}
}

package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestChaosAPIServer has the API server of an existing cluster throttle, fail, drop
// connections and answer late, at random, during a command. The next command, with an
// API server that works, leads to the same objects as without faults.
func TestChaosAPIServer(t *testing.T) {
	t.Parallel()
	points, random := forms(1, chaosAPIPoints), rand.New(rand.NewPCG(firstSeed(t), 0))
	x := newChaosStack(t)
	require.NoError(t, x.sandbox.Cluster().Start(t.Context(), t.Output()))
	config, err := x.sandbox.Cluster().RESTConfig()
	require.NoError(t, err)
	proxy := newFaultyProxy(t, config, rand.New(rand.NewPCG(random.Uint64(), 1)))
	x.existing = kubeconfigOf(t, proxy.URL)
	x.write("large")
	loaded, err := load(x.stack.configuration)
	require.NoError(t, err)
	for _, pool := range loaded.Plan().Pools {
		newCluster(t, x.sandbox).createNodes(pool)
	}
	x.measure()
	commands := 0
	for ; commands < points || proxy.owes(); commands++ {
		p := x.draw(random, nil, false)
		t.Run(fmt.Sprintf("%d_%s_to_%s", commands+1, kindOf(p.from, p.to), p.to), func(t *testing.T) {
			x.use(t)
			proxy.set(true)
			run := x.start(p.to)
			select {
			case <-run.ended:
			case <-time.After(patience):
				t.Errorf("the command did not end")
			}
			proxy.set(false)
			run.end()
			x.converge(p.to, true)
		})
		if t.Failed() {
			return
		}
	}
	x.use(t)
	x.converge("destroy", true)
	report(t, "%d commands; of %d requests failed: %v; %d needed %s", commands, proxy.requests, proxy.failed, x.tookOver, takeOver)
}

// answerFaults are the faults of a proxy.
var answerFaults = []string{"429", "500", "503", "reset", "unanswered", "slow"}

// faultyProxy forwards requests to an API server, and fails some of them.
type faultyProxy struct {
	*httptest.Server
	forward http.Handler

	mu       sync.Mutex
	random   *rand.Rand
	on       bool
	requests int
	failed   map[string]int
	// due are the faults that have not come yet.
	due []string
}

func newFaultyProxy(t *testing.T, config *rest.Config, random *rand.Rand) *faultyProxy {
	t.Helper()
	p := &faultyProxy{random: random, failed: map[string]int{}, due: slices.Clone(answerFaults), forward: forwardTo(t, config)}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// forwardTo forwards requests to an API server.
func forwardTo(t *testing.T, config *rest.Config) http.Handler {
	t.Helper()
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, forward.FlushInterval = transport, -1
	return forward
}

// kubeconfigOf writes one that leads through a proxy, and returns its path.
func kubeconfigOf(t *testing.T, proxy string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["faulty"] = &clientcmdapi.Cluster{Server: proxy}
	config.AuthInfos["faulty"] = &clientcmdapi.AuthInfo{}
	config.Contexts["faulty"] = &clientcmdapi.Context{Cluster: "faulty", AuthInfo: "faulty"}
	config.CurrentContext = "faulty"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// owes reports whether a kind of fault has not come yet.
func (p *faultyProxy) owes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.due) > 0
}

func (p *faultyProxy) set(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

// draw returns the fault of a request.
func (p *faultyProxy) draw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on {
		return ""
	}
	p.requests++
	fault := ""
	switch n := p.random.IntN(100); {
	case n < 5:
		fault = "429"
	case n < 6:
		fault = "500"
	case n < 7:
		fault = "503"
	case n < 8:
		fault = "reset"
	case n < 9:
		fault = "unanswered"
	case n < 20:
		fault = "slow"
	}
	if len(p.due) > 0 && p.requests%5 == 0 {
		fault, p.due = p.due[0], p.due[1:]
	}
	if fault != "" {
		p.failed[fault]++
	}
	return fault
}

func (p *faultyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch p.draw() {
	case "429":
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	case "500":
		http.Error(w, "internal error", http.StatusInternalServerError)
	case "503":
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
	case "reset":
		panic(http.ErrAbortHandler)
	case "unanswered": // carried out, but the client does not learn it
		if r.URL.Query().Get("watch") == "" {
			p.forward.ServeHTTP(&discarded{header: http.Header{}}, r)
		}
		panic(http.ErrAbortHandler)
	case "slow":
		time.Sleep(time.Second)
		p.forward.ServeHTTP(w, r)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// discarded is an answer that gets lost.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return io.Discard.Write(p) }
func (d *discarded) WriteHeader(int)             {}

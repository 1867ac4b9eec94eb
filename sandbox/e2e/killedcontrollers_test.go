package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// writesOfControllers is how many writes of the controllers one up has at most, and one destroy.
const writesOfControllers = 150

// TestKilledControllers kills up and destroy at writes of the resources of JobSet and Kueue: the API
// server carries the write out, and the client gets no answer. Up goes on from there, and after destroy nothing
// is left. The long form does so at every write of one up and of one destroy, the short form at one.
func TestKilledControllers(t *testing.T) {
	t.Parallel()
	buildKueue(t)
	x := newChaosStack(t)
	require.NoError(t, x.sandbox.Cluster().Start(t.Context(), t.Output()))
	config, err := x.sandbox.Cluster().RESTConfig()
	require.NoError(t, err)
	proxy := newKillingProxy(t, config)
	x.existing = kubeconfigOf(t, proxy.URL)
	x.change = func(configuration object) {
		configuration["persia:queue"] = object{"teams": []object{{"name": "ranking"}}}
		for _, job := range configuration["persia:jobs"].([]object) {
			job["engine"], job["queue"] = "jobset", "ranking"
		}
	}
	x.write("small")
	loaded, err := load(x.stack.configuration)
	require.NoError(t, err)
	for _, pool := range loaded.Plan().Pools {
		newCluster(t, x.sandbox).createNodes(pool)
	}
	x.worlds["destroy"] = x.await(func(w world) bool { return len(w.Unready) == 0 })

	first, last := 40, 40
	if *long {
		first, last = 1, writesOfControllers
	}
	kills := map[string]int{}
	for n := first; n <= last; n++ {
		var killed [2]bool
		ok := t.Run(fmt.Sprintf("write_%d", n), func(t *testing.T) {
			x.use(t)
			started := time.Now()
			killed[0] = x.killAtWrite(proxy, "small", n)
			require.NoError(t, x.reach("small"))
			now := x.await(func(w world) bool { return len(w.Unready) == 0 && slices.ContainsFunc(w.Objects, ofJobSet) })
			require.Empty(t, now.Unready)
			killed[1] = x.killAtWrite(proxy, "destroy", n)
			require.NoError(t, x.reach("destroy"))
			x.current = "destroy"
			x.settle()
			fmt.Fprintf(t.Output(), "TIME %s: %s\n", t.Name(), time.Since(started).Round(time.Second))
		})
		for i, command := range []string{"up", "destroy"} {
			if killed[i] {
				kills[command]++
			}
		}
		if !ok || killed == [2]bool{} {
			break
		}
	}
	require.NotEmpty(t, kills)
	require.Less(t, kills["up"], writesOfControllers, "every write of up has its kill")
	require.Less(t, kills["destroy"], writesOfControllers, "every write of destroy has its kill")
	report(t, "killed at writes of the controllers: %v", kills)
}

func ofJobSet(object string) bool { return strings.HasPrefix(object, "JobSet ") }

// killAtWrite runs the command that brings the stack to a state, and kills it at the nth write of the
// controllers. It reports whether the command came that far.
func (x *chaosStack) killAtWrite(proxy *killingProxy, to string, n int) bool {
	x.t.Helper()
	reached := proxy.arm(n)
	defer proxy.arm(0)
	run := x.start(to)
	defer run.end()
	select {
	case write := <-reached:
		x.t.Logf("kill %s at write %d: %s", to, n, write)
		return true
	case <-run.ended:
		require.NoError(x.t, run.err, "%s before write %d", to, n)
	case <-time.After(patience):
		require.Fail(x.t, "the command hangs", "%s before write %d", to, n)
	}
	return false
}

// killingProxy forwards requests to an API server, and never answers a certain write.
type killingProxy struct {
	*httptest.Server
	forward http.Handler

	mu sync.Mutex
	// left is how many writes come before the one that has no answer, with it, or 0.
	left    int
	reached chan string
}

func newKillingProxy(t *testing.T, config *rest.Config) *killingProxy {
	t.Helper()
	p := &killingProxy{forward: forwardTo(t, config)}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// arm has the nth write from now on have no answer. The channel receives it once it is carried out.
func (p *killingProxy) arm(n int) <-chan string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.reached = n, make(chan string, 1)
	return p.reached
}

// strikes counts a write, and says where to tell that it is the one.
func (p *killingProxy) strikes() chan<- string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		return nil
	}
	if p.left--; p.left > 0 {
		return nil
	}
	return p.reached
}

// ofControllers is in the path or in the body of each write of the controllers' resources.
var ofControllers = regexp.MustCompile(`(?i)jobset|kueue`)

func (p *killingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		p.forward.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var reached chan<- string
	if ofControllers.MatchString(r.URL.Path) || ofControllers.Match(body) {
		reached = p.strikes()
	}
	if reached == nil {
		p.forward.ServeHTTP(w, r)
		return
	}
	p.forward.ServeHTTP(&discarded{header: http.Header{}}, r)
	reached <- r.Method + " " + r.URL.Path
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

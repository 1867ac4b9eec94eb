package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persia/sandbox"
	"persia/sandbox/background"
)

// patience limits each wait for what a controller, a server or a command does, except for
// trainings. The tests share a machine that may be slow, so it is long: only a test that
// fails waits for all of it.
const patience = 5 * time.Minute

// await waits until a condition holds, and gives up when it can no longer hold because something that the
// test needs has ended. It formats the arguments of the message after the wait.
func await(t testing.TB, condition func() bool, message string, arguments ...any) {
	t.Helper()
	awaitUnless(t, patience, nothingLost, condition, message, arguments...)
}

// awaitWhile waits until a condition holds, and gives up when ended is closed.
func awaitWhile(t testing.TB, ended <-chan struct{}, condition func() bool, message string, arguments ...any) {
	t.Helper()
	require.Truef(t, eventually(patience, ended, condition), message, arguments...)
}

// awaitUnless is [await] that also gives up when lost says why the condition can no longer hold.
func awaitUnless(t testing.TB, patience time.Duration, lost func() string, condition func() bool, message string, arguments ...any) {
	t.Helper()
	if why, holds := eventuallyUnless(t, patience, lost, condition); !holds {
		require.Fail(t, "waited for nothing", "%s: %s", fmt.Sprintf(message, arguments...), why)
	}
}

// nothingLost is for a wait that only ends early when something that the test needs has ended.
func nothingLost() string { return "" }

// eventuallyUnless is [eventually] until lost, or what the test needs, says why the condition can no longer
// hold.
func eventuallyUnless(t testing.TB, patience time.Duration, lost func() string, condition func() bool) (why string, holds bool) {
	const pause = time.Second
	ended, looked := make(chan struct{}), time.Now()
	last := ""
	holds = eventually(patience, ended, func() bool {
		if condition() {
			return true
		}
		if why == "" && time.Since(looked) >= pause {
			looked = time.Now()
			said := cmp.Or(lost(), needs.lost(t))
			// One look may see a program that is replaced at this moment.
			if said != "" && said == last {
				why = said
				close(ended)
			}
			last = said
		}
		return false
	})
	if why == "" {
		why = "it did not come in " + patience.String()
	}
	return why, holds
}

// needs has what tests need: sandboxes, real nodes, and servers.
var needs = needed{of: map[string]map[int]func() string{}}

// needed maps the names of tests to functions that say what has ended without which nothing comes any more.
type needed struct {
	sync.Mutex
	of   map[string]map[int]func() string
	last int
}

// add makes the waits of a test, and of its subtests, end early when lost says why, until t ends.
func (n *needed) add(t testing.TB, lost func() string) {
	test, _, _ := strings.Cut(t.Name(), "/")
	n.Lock()
	defer n.Unlock()
	n.last++
	id := n.last
	if n.of[test] == nil {
		n.of[test] = map[int]func() string{}
	}
	n.of[test][id] = lost
	t.Cleanup(func() {
		n.Lock()
		defer n.Unlock()
		delete(n.of[test], id)
	})
}

// lost says what has ended that a test needs, or nothing.
func (n *needed) lost(t testing.TB) string {
	test, _, _ := strings.Cut(t.Name(), "/")
	n.Lock()
	all := slices.Collect(maps.Values(n.of[test]))
	n.Unlock()
	for _, lost := range all {
		if why := lost(); why != "" {
			return why
		}
	}
	return ""
}

// lostPart names a program of a sandbox that was started and has ended. Only the next up starts it again.
func lostPart(s *sandbox.Sandbox) string {
	if _, err := os.Stat(s.Kubeconfig()); err != nil {
		return "" // it is not up
	}
	if !s.Cluster().Running(context.Background()) {
		return "the control plane has ended"
	}
	agent := filepath.Dir(s.AgentLogs())
	for _, dir := range []string{agent, filepath.Join(filepath.Dir(agent), "node")} {
		if name := filepath.Base(dir); hasEnded(dir) {
			return "the " + name + " has ended"
		}
	}
	return ""
}

// hasEnded reports whether a program in the background was started in a folder, and has ended by itself.
func hasEnded(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.Base(dir)+".json"))
	return err == nil && !background.Running(dir)
}

// eventually waits until a condition holds or ended is closed, and reports whether the
// condition holds. It calls the condition in the goroutine of the test, where the condition
// may end the test, which [require.Eventually] does not allow. The longer it has waited, the more seldom it
// looks, since each look costs the processors what others wait for.
func eventually(patience time.Duration, ended <-chan struct{}, condition func() bool) bool {
	const shortest, longest = 100 * time.Millisecond, 500 * time.Millisecond
	started := time.Now()
	for deadline := time.After(patience); !condition(); {
		select {
		case <-ended:
			return condition()
		case <-deadline:
			return false
		case <-time.After(min(max(shortest, time.Since(started)/20), longest)):
		}
	}
	return true
}

// operation is a command of a sandbox that runs beside the test.
type operation struct {
	ended chan struct{}
	err   error
}

func begin(do func() error) *operation {
	o := &operation{ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		o.err = do()
	}()
	return o
}

func (o *operation) wait() error {
	<-o.ended
	return o.err
}

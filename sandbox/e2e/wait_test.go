package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience limits each wait for what a controller, a server or a command does, except for
// trainings. The tests share a machine that may be slow, so it is long: only a test that
// fails waits for all of it.
const patience = 5 * time.Minute

// await waits until a condition holds. It formats the arguments of the message after the wait.
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
	if why, holds := eventuallyUnless(patience, lost, condition); !holds {
		require.Fail(t, "waited for nothing", "%s: %s", fmt.Sprintf(message, arguments...), why)
	}
}

// nothingLost is for a wait that nothing ends early.
func nothingLost() string { return "" }

// eventuallyUnless is [eventually] until lost says why the condition can no longer hold.
func eventuallyUnless(patience time.Duration, lost func() string, condition func() bool) (why string, holds bool) {
	const pause = time.Second
	ended, looked := make(chan struct{}), time.Now()
	last := ""
	holds = eventually(patience, ended, func() bool {
		if condition() {
			return true
		}
		if why == "" && time.Since(looked) >= pause {
			looked = time.Now()
			said := lost()
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

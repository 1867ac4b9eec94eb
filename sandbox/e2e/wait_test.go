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

// await waits until a condition holds. It formats the arguments of the message after the
// wait.
func await(t testing.TB, condition func() bool, message string, arguments ...any) {
	t.Helper()
	awaitWhile(t, nil, condition, message, arguments...)
}

// awaitWhile waits until a condition holds, and gives up when ended is closed.
func awaitWhile(t testing.TB, ended <-chan struct{}, condition func() bool, message string, arguments ...any) {
	t.Helper()
	require.Truef(t, eventually(patience, ended, condition), message, arguments...)
}

// awaitUnless waits until a condition holds, and gives up when lost says why it no longer can.
func awaitUnless(t testing.TB, patience time.Duration, lost func() string, condition func() bool, message string, arguments ...any) {
	t.Helper()
	if why, holds := eventuallyUnless(patience, lost, condition); !holds {
		require.Fail(t, "waited for nothing", "%s: %s", fmt.Sprintf(message, arguments...), why)
	}
}

// eventuallyUnless is [eventually] until lost says why the condition can no longer hold.
func eventuallyUnless(patience time.Duration, lost func() string, condition func() bool) (why string, holds bool) {
	const pause = time.Second
	ended, looked := make(chan struct{}), time.Now()
	holds = eventually(patience, ended, func() bool {
		if condition() {
			return true
		}
		if why == "" && time.Since(looked) >= pause {
			looked = time.Now()
			if why = lost(); why != "" {
				close(ended)
			}
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
// may end the test, which [require.Eventually] does not allow.
func eventually(patience time.Duration, ended <-chan struct{}, condition func() bool) bool {
	const pause = 100 * time.Millisecond
	for deadline := time.After(patience); !condition(); {
		select {
		case <-ended:
			return condition()
		case <-deadline:
			return false
		case <-time.After(pause):
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

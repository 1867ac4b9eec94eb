package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience limits each wait for what a controller, a server or a command does, except for trainings. The tests share a
// machine that may be slow, so it is long: only a test that fails waits for all of it.
const patience = 5 * time.Minute

// await waits until a condition holds. It formats the arguments of the message after the wait.
func await(t testing.TB, condition func() bool, message string, arguments ...any) {
	t.Helper()
	awaitUnless(t, patience, nothingLost, condition, message, arguments...)
}

// awaitUnless is [await] that also gives up when lost says why the condition can no longer hold.
func awaitUnless(t testing.TB, patience time.Duration, lost func() string, condition func() bool, message string, arguments ...any) {
	t.Helper()
	if why, holds := eventually(patience, lost, condition); !holds {
		require.Fail(t, "waited for nothing", "%s: %s", fmt.Sprintf(message, arguments...), why)
	}
}

// nothingLost is for a wait that nothing ends early.
func nothingLost() string { return "" }

// eventually waits until a condition holds, and says why it does not. It calls the condition in the goroutine
// of the test, where the condition may end the test, which [require.Eventually] does not allow. The longer it
// has waited, the more seldom it looks, since each look costs the processors what others wait for.
func eventually(patience time.Duration, lost func() string, condition func() bool) (why string, holds bool) {
	const shortest, longest, pause = 100 * time.Millisecond, 500 * time.Millisecond, time.Second
	started, looked, last := time.Now(), time.Now(), ""
	for time.Since(started) < patience {
		if condition() {
			return "", true
		}
		if time.Since(looked) >= pause {
			looked = time.Now()
			// One look may see a program that is replaced at this moment.
			if why = lost(); why != "" && why == last {
				return why, condition()
			}
			last = why
		}
		time.Sleep(min(max(shortest, time.Since(started)/20), longest))
	}
	return "it did not come in " + patience.String(), false
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

// over says that an operation has ended, for a wait for what it does.
func (o *operation) over() string {
	select {
	case <-o.ended:
		return fmt.Sprintf("the operation has ended: %v", o.err)
	default:
		return ""
	}
}

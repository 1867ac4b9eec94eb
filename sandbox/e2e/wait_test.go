package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what comes by itself, but for a training. It is
// long, since the tests run beside each other on machines that may be slow: it only
// matters when something does not come.
const patience = 5 * time.Minute

// await waits for what comes by itself. The arguments of the message are formatted once
// the wait is over.
func await(t testing.TB, condition func() bool, message string, arguments ...any) {
	t.Helper()
	require.Truef(t, eventually(patience, condition), message, arguments...)
}

// eventually waits until a condition holds, and reports whether it does. It looks in the
// goroutine of the test, so that the condition may end the test. In that of
// [require.Eventually] it may not.
func eventually(patience time.Duration, condition func() bool) bool {
	const pause = 100 * time.Millisecond
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		if condition() {
			return true
		}
	}
	return condition()
}

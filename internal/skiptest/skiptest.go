// Package skiptest skips tests for programs that a machine does not have.
package skiptest

import (
	"os"
	"testing"
)

// Skip skips a test with a reason. In continuous integration, where CI is true, the
// test fails instead: a test that never runs protects nothing.
func Skip(t testing.TB, reason any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("continuous integration skips no test: %v", reason)
	}
	t.Skip(reason)
}

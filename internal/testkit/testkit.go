// Package testkit has what the tests of several packages share: a stack file to edit, a recorder of
// registered resources, golden files, certificates, and rules for tests of processes.
package testkit

import (
	"os"
	"testing"
	"time"
)

// Patience limits each wait for what comes at once on an idle machine. Other work may keep the machine busy, and
// only a test that fails waits for all of it.
const Patience = 5 * time.Minute

// Skip skips a test for a program that the machine does not have. In continuous integration, where CI
// is true, the test fails instead: a test that never runs protects nothing.
func Skip(t testing.TB, reason any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("continuous integration skips no test: %v", reason)
	}
	t.Skip(reason)
}

// Processes marks a test that starts processes and waits for them: `make test` leaves it out, and `make e2e` runs it.
func Processes(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it waits for processes")
	}
}

// Package testkit has what the tests of several packages share: a stack file to edit, a recorder of
// registered resources, golden files, certificates, and rules for tests of processes.
package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

var update = flag.Bool("update", false, "rewrite the golden files")

// AssertFile compares a text with a golden file in the folder testdata of the test.
func AssertFile(t testing.TB, file, got string) {
	t.Helper()
	assert.Equal(t, ReadGolden(t, file, got), got, "go test . -update in this folder rewrites testdata/%s", file)
}

// ReadGolden returns the content of a golden file, by its path from the folder testdata. With -update, it
// writes got to the file first.
func ReadGolden(t testing.TB, file, got string) string {
	t.Helper()
	golden := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	return Read(t, golden)
}

// Must returns the value of a call that must not fail: testkit.Must(os.Open(file))(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return value
	}
}

// Fails checks that an error has a text, or that there is none where the text is "".
func Fails(t testing.TB, err error, text string, of ...any) {
	t.Helper()
	if text == "" {
		assert.NoError(t, err, of...)
	} else {
		assert.ErrorContains(t, err, text, of...)
	}
}

// Read returns the content of a file.
func Read(t testing.TB, file string) string {
	t.Helper()
	return string(Must(os.ReadFile(file))(t))
}

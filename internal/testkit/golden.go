package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	return string(want)
}

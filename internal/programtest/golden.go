package programtest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// AssertFile compares a text with a file in the folder testdata of the test.
func AssertFile(t testing.TB, file, got string) {
	t.Helper()
	golden := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test . -update in this folder writes it anew")
}

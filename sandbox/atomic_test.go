package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWritesAreAtomic: what a command finds of an earlier one that was killed is whole.
// The packages that keep the sandbox's own files replace them by another.
func TestWritesAreAtomic(t *testing.T) {
	inPlace := regexp.MustCompile(`\bos\.(WriteFile|Create)\(`)
	for _, folder := range []string{".", "background", "controlplane", "state", "toolchain"} {
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.NotRegexp(t, inPlace, string(text), "%s: write by renameio", path)
		}
	}
}

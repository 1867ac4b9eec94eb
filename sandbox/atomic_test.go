package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// otherwise are the files and folders of source that write into files all the same, and
// why the next command finds nothing of a killed one that is only half there.
var otherwise = map[string]string{
	"images": "archives are renamed, and what else there is counts only with its stamp, which is compared as a whole",
	"node":   "each start writes all of it anew",
}

// TestWritesAreAtomic: what a command finds of an earlier one that was killed is whole.
// Files are replaced by others: who is killed while it writes into one leaves half of it.
func TestWritesAreAtomic(t *testing.T) {
	inPlace := regexp.MustCompile(`\b(os\.WriteFile|os\.Create|os\.O_TRUNC|clientcmd\.WriteToFile)\b`)
	looked := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "e2e" {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			otherwise[path] != "" || otherwise[filepath.Dir(path)] != "" {
			return nil
		}
		looked++
		text, err := os.ReadFile(path)
		assert.NotRegexp(t, inPlace, string(text), "%s: write by renameio", path)
		return err
	}))
	assert.Positive(t, looked)
}

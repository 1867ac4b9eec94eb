package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSecurityNamesTests: what SECURITY.md and the pages on security and the sandbox claim,
// a test holds that exists, and that no other has the name of.
func TestSecurityNamesTests(t *testing.T) {
	tests := definedTests(t)
	for _, page := range []string{"SECURITY.md", "docs/contribute/sandbox.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		named := regexp.MustCompile("`(Test[A-Z]\\w*)`").FindAllSubmatch(text, -1)
		require.NotEmpty(t, named, page)
		for _, name := range named {
			assert.Equal(t, 1, tests[string(name[1])], "%s names %s", page, name[1])
		}
	}
}

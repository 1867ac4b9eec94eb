package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// otherTerms are names that older releases of PERSIA have for its roles. docs/README.md has the
// terms that everything here uses instead.
var otherTerms = regexp.MustCompile(`(?i)(?:^|[\s("/>])(trainers?|data[ -]loaders?|middlewares?|embedding servers?|(?:embedding\s+)?parameter\s+servers?)\b`)

// termFiles are what users read besides the pages, as patterns.
var termFiles = []string{
	"Pulumi*.yaml", "examples/Pulumi.*.yaml", "examples/training/*", "examples/shop/*",
	"workload/persia/dashboard.json", "workload/persia/operator/*.py",
}

// codeSpan may name a program or a field.
var codeSpan = regexp.MustCompile("`[^`\n]+`")

// TestTerms: pages, stack files, examples, and the dashboard call each role by its one name.
func TestTerms(t *testing.T) {
	names := pageFiles(t)
	for _, pattern := range termFiles {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		assert.NotEmpty(t, found, "no file is like %s", pattern)
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			require.NoError(t, err)
			names = append(names, name)
		}
	}
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		text := codeSpan.ReplaceAllString(string(source), "")
		for _, match := range otherTerms.FindAllStringSubmatch(text, -1) {
			if term := oneLine(match[1]); !strings.HasPrefix(strings.ToLower(term), "embedding p") {
				t.Errorf("%s: %q; write the term of docs/README.md", name, term)
			}
		}
	}
}

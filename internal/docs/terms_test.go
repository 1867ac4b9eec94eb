package docs

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// otherTerms are names that older releases of PERSIA have for its roles. docs/README.md has the
// terms that everything here uses instead.
var otherTerms = regexp.MustCompile(`(?i)(?:^|[\s("/>])(trainers?|data[ -]loaders?|middlewares?|embedding servers?|(?:embedding\s+)?parameter\s+servers?)\b`)

// termFiles are patterns of the files that users read besides the pages.
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

// olderTerms are the files of programs that name roles as older releases of PERSIA do, because
// manifests and images may.
var olderTerms = []string{
	"config/check/check_test.go", "config/jobspec/kinds.go", "config/manifest/manifest_test.go", "config/manifest/spelling.go",
	"internal/docs/terms_test.go", "internal/reference/schema_test.go", "sandbox/stackgen/effect_test.go", "sandbox/stackgen/values.go",
	"tests/published_test.go", "workload/persia/pods_test.go", "workload/persia/roles.sh", "workload/persia/roles_test.go",
}

// TestTermsOfPrograms: strings and comments of all programs call nn-workers and dataloaders by
// their names, which users read in logs and messages.
func TestTermsOfPrograms(t *testing.T) {
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".ci" && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".py", ".sh"}, filepath.Ext(name)) || slices.Contains(olderTerms, name) {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		words := []string{string(source)}
		if filepath.Ext(name) == ".go" {
			words = stringsAndComments(source)
		}
		for _, text := range words {
			for _, match := range otherTermsInPrograms.FindAllStringSubmatch(text, -1) {
				t.Errorf("%s: %q; write nn-worker or dataloader, as docs/README.md does", name, match[1])
			}
		}
		return nil
	}))
}

// otherTermsInPrograms are otherTerms without the names of servers, which a program may have of
// another kind. Paths and identifiers of upstream may contain them.
var otherTermsInPrograms = regexp.MustCompile(`(?i)(?:^|[^\w./-])(trainers?|data loaders?)\b(?:$|[^\w/.-]|[.](?:\s|$))`)

// stringsAndComments returns the strings and comments of a Go file.
func stringsAndComments(source []byte) []string {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(source)), source, nil, scanner.ScanComments)
	var found []string
	for {
		switch _, kind, text := s.Scan(); kind {
		case token.EOF:
			return found
		case token.STRING, token.COMMENT:
			found = append(found, text)
		}
	}
}

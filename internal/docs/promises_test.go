package docs

import (
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark/ast"
)

// promise is a sentence of a page that describes behavior, with the tests that fail if it is wrong,
// or the reason why there is none.
type promise struct {
	Page, Says string
	Tests      []string
	Untested   string
	// Break is an edit of a Go file after which the tests of a package fail.
	Break *struct{ File, Old, New, Package string }
}

var breakPromises = flag.Bool("break", false, "break what promises.json says how to break, and see a test of each promise fail")

// TestPromises: each promise is still in its page, and has tests that exist.
func TestPromises(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "promises.json"))
	require.NoError(t, err)
	var promises []promise
	require.NoError(t, json.Unmarshal(text, &promises))
	tests := definedTests(t)
	seen := map[string]bool{}
	for _, p := range promises {
		assert.False(t, seen[p.Says], "%s is there twice", p.Says)
		seen[p.Says] = true
		page, err := os.ReadFile(filepath.Join(root, p.Page))
		require.NoError(t, err)
		assert.Contains(t, oneLine(string(page)), oneLine(p.Says), "%s no longer says so; correct testdata/promises.json", p.Page)
		assert.NotEqual(t, len(p.Tests) == 0, p.Untested == "", "%s: name its tests, or why there are none", p.Says)
		for _, name := range p.Tests {
			assert.Equal(t, 1, tests[name], "%s: %s", p.Says, name)
		}
		if p.Break != nil {
			p.breaks(t)
		}
	}
}

// TestSections: testdata/sections.json has every section of every page for users, with the tests that
// hold what it says, or with the sentence of the page that says that no test does.
func TestSections(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "sections.json"))
	require.NoError(t, err)
	var listed map[string]map[string]any
	require.NoError(t, json.Unmarshal(text, &listed))
	assert.ElementsMatch(t, userPages(t), slices.Collect(maps.Keys(listed)))
	tests := definedTests(t)
	for name, sections := range listed {
		p := readPage(t, filepath.FromSlash(name))
		assert.ElementsMatch(t, p.headings(), slices.Collect(maps.Keys(sections)), "%s: the sections of testdata/sections.json", name)
		said := oneLine(string(p.source))
		for section, held := range sections {
			switch held := held.(type) {
			case string:
				assert.True(t, strings.Contains(said, held), "%s, %s: the page no longer says: %s", name, section, held)
			case []any:
				assert.NotEmpty(t, held, "%s, %s", name, section)
				for _, test := range held {
					assert.Equal(t, 1, tests[test.(string)], "%s, %s: %s", name, section, test)
				}
			default:
				t.Errorf("%s, %s: name tests, or the sentence that says that there are none", name, section)
			}
		}
	}
}

// userPages are the pages for users that nothing generates, with slashes.
func userPages(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, name := range pageFiles(t) {
		name = filepath.ToSlash(name)
		if slices.Contains([]string{"docs/start", "docs/guides", "docs/reference"}, path.Dir(name)) &&
			!slices.Contains([]string{"docs/reference/configuration.md", "docs/reference/pedl.md"}, name) {
			pages = append(pages, name)
		}
	}
	return pages
}

// headings are the texts of the headings of a page.
func (p *page) headings() []string {
	var all []string
	p.walk(func(node ast.Node) {
		if heading, ok := node.(*ast.Heading); ok {
			all = append(all, p.text(heading))
		}
	})
	return all
}

// breaks holds that the edit is possible, and, if that is asked for, that a test fails after it. The
// go command reads the edited file in the place of the real one.
func (p promise) breaks(t *testing.T) {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(root, p.Break.File))
	require.NoError(t, err)
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), p.Break.Old), "%s: %s has no or several %s; correct testdata/promises.json", p.Says, p.Break.File, p.Break.Old)
	if !*breakPromises {
		return
	}
	dir := t.TempDir()
	edited, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(edited, []byte(strings.Replace(string(source), p.Break.Old, p.Break.New, 1)), 0o600))
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{file: edited}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	command := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-run", "^("+strings.Join(p.Tests, "|")+")$", "./"+p.Break.Package)
	command.Dir = root
	output, err := command.CombinedOutput()
	assert.Error(t, err, "%s: no test fails", p.Says)
	assert.Contains(t, string(output), "--- FAIL: ", p.Says)
	t.Logf("%s: %s", p.Says, regexp.MustCompile(`--- FAIL: \S+`).FindString(string(output)))
}

// oneLine is a text without the breaks of its lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

var definition = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)

// definedTests are the tests of the repository, with how often each name is defined.
func definedTests(t *testing.T) map[string]int {
	t.Helper()
	tests := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range definition.FindAllSubmatch(text, -1) {
			tests[string(match[1])]++
		}
		return err
	}))
	return tests
}

package docs

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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
	Break      *edit
}

// edit makes a promise untrue: one of its tests, in a package of the root module, fails after it.
type edit struct{ File, Old, New, Package string }

var breakPromises = flag.Bool("break", false, "break what promises.json says how to break, and see a test of each promise fail")

// TestPromises: each promise is still in its page, and has tests that exist.
func TestPromises(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "promises.json"))
	require.NoError(t, err)
	var promises []promise
	require.NoError(t, json.Unmarshal(text, &promises))
	tests := definedTests(t)
	seen := map[string]bool{}
	b := &bench{compiled: map[string]string{}}
	if *breakPromises {
		b.copyTree(t)
	}
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
			t.Run(p.Says, func(t *testing.T) { b.breaks(t, p) })
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

// bench is where promises are broken: a copy of the repository, since tests also read scripts, workflows,
// and pages.
type bench struct {
	dir string
	// compiled are the tests of a package without an edit.
	compiled map[string]string
}

// copyTree copies every file that git has, or would add.
func (b *bench) copyTree(t *testing.T) {
	t.Helper()
	b.dir = t.TempDir()
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // git still has it
		}
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		path := filepath.Join(b.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, text, info.Mode()))
	}
}

// breaks checks that the edit is possible, and, if that is asked for, that the tests pass without it, and
// that one fails after it.
func (b *bench) breaks(t *testing.T, p promise) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, p.Break.File))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), p.Break.Old), "%s has no or several %s; correct testdata/promises.json", p.Break.File, p.Break.Old)
	if !*breakPromises {
		return
	}
	tests := b.compile(t, p.Break.Package, "")
	output, err := b.run(t, tests, p)
	require.NoError(t, err, "without the edit: %s", output)

	edited := filepath.Join(b.dir, p.Break.File)
	require.NoError(t, os.WriteFile(edited, []byte(strings.Replace(string(source), p.Break.Old, p.Break.New, 1)), 0o600))
	defer func() { require.NoError(t, os.WriteFile(edited, source, 0o600)) }()
	if path.Ext(p.Break.File) == ".go" {
		tests = b.compile(t, p.Break.Package, p.Break.File)
	}
	output, err = b.run(t, tests, p)
	failed := regexp.MustCompile(`--- FAIL: (\S+)`).FindSubmatch(output)
	if assert.Error(t, err, "no test fails") && assert.NotNil(t, failed, "%s", output) {
		// Not as a log of this file: the nightly run shows such lines as failures.
		fmt.Fprintf(t.Output(), "%s fails, as it must\n", failed[1])
	}
}

// run runs the tests of a promise in the copy, and returns what they print.
func (b *bench) run(t *testing.T, tests string, p promise) ([]byte, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), tests, "-test.timeout", "10m", "-test.v", "-test.run", "^("+strings.Join(p.Tests, "|")+")$")
	command.Dir = filepath.Join(b.dir, p.Break.Package)
	output, err := command.CombinedOutput()
	if !strings.Contains(string(output), "=== RUN") {
		return output, errors.New("the package has none of the tests")
	}
	return output, err
}

// compile compiles the tests of a package, with a Go file as it is in the copy, or without one.
func (b *bench) compile(t *testing.T, folder, file string) string {
	t.Helper()
	if tests := b.compiled[folder]; file == "" && tests != "" {
		return tests
	}
	tests, overlay := filepath.Join(t.TempDir(), "tests"), filepath.Join(t.TempDir(), "overlay.json")
	replaced := map[string]string{}
	if file == "" {
		tests = filepath.Join(b.dir, "compiled", folder, "tests")
	} else {
		replaces, err := filepath.Abs(filepath.Join(root, file))
		require.NoError(t, err)
		replaced[replaces] = filepath.Join(b.dir, file)
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	command := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", tests, "./"+folder)
	command.Dir = root
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	if file == "" {
		b.compiled[folder] = tests
	}
	return tests
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

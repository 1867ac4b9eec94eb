package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// topics are the packages of the topics of a stack file, with the packages of config that each
// may import in addition to the shared ones.
var topics = map[string][]string{
	"clusterspec": nil, "cachespec": nil, "poolspec": nil, "operatorspec": nil, "volumespec": nil, "natsspec": nil, "queuespec": nil,
	"jobspec":  {"natsspec"},   // a job has settings of NATS of its own
	"pedlspec": {"volumespec"}, // a volume may hold its database
}

// others are the packages of config that are no topics and may import any other.
var others = []string{"manifest", "stackfile"}

// shared are the packages of config that every topic may import.
var shared = []string{"check", "decode", "images", "notation", "pod"}

// file is a source file of one of the modules.
type file struct {
	// path is from the root of the repository.
	path string
	ast  *ast.File
}

func (f file) folder() string { return path.Dir(f.path) }

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports returns the folders of this repository that the file imports.
func (f file) imports() []string {
	var folders []string
	for _, spec := range f.ast.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if folder, own := strings.CutPrefix(imported, "persia/"); own && err == nil {
			folders = append(folders, folder)
		}
	}
	return folders
}

// TestNoAliases checks that no file imports a package of this repository under another name.
func TestNoAliases(t *testing.T) {
	for _, f := range source(t) {
		for _, spec := range f.ast.Imports {
			if spec.Name != nil && strings.HasPrefix(spec.Path.Value, `"persia/`) {
				t.Errorf("%s imports %s as %s; rename the package or what it collides with", f.path, spec.Path.Value, spec.Name.Name)
			}
		}
	}
}

// TestSkips checks that tests are skipped through package skiptest, which skips none in
// continuous integration.
func TestSkips(t *testing.T) {
	for _, f := range source(t) {
		if !f.isTest() {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			call, ok := node.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, call.Sel.Name) {
				return true
			}
			if from, named := call.X.(*ast.Ident); !named || from.Name != "skiptest" {
				t.Errorf("%s skips a test by itself, in continuous integration too; call skiptest.Skip", f.path)
			}
			return true
		})
	}
}

// TestTopicsStandAlone checks that topics of a stack file do not import each other.
func TestTopicsStandAlone(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range source(t) {
		topic, ok := strings.CutPrefix(f.folder(), "config/")
		allowed, isTopic := topics[topic]
		if !ok || f.isTest() {
			continue
		}
		assert.True(t, isTopic || slices.Contains(shared, topic) || slices.Contains(others, topic), "config/%s is no topic and not shared; add it to this test", topic)
		seen[topic] = true
		for _, folder := range f.imports() {
			imported, ofConfig := strings.CutPrefix(folder, "config/")
			switch {
			case folder == "config":
				t.Errorf("%s imports config, which imports it", f.path)
			case folder == "gcp", folder == "capacity":
			case ofConfig && (slices.Contains(shared, imported) || slices.Contains(allowed, imported)):
			case isTopic:
				t.Errorf("%s imports %s; a topic imports %s, gcp and capacity", f.path, folder, strings.Join(append(shared, allowed...), ", "))
			}
		}
	}
	for topic := range topics {
		assert.True(t, seen[topic], "there is no config/%s", topic)
	}
}

// TestFoldersHaveNoCycle checks that the folders at the root do not import each other in cycles.
func TestFoldersHaveNoCycle(t *testing.T) {
	imports := map[string]map[string]bool{}
	for _, f := range source(t) {
		if f.isTest() {
			continue
		}
		from := top(f.path)
		for _, folder := range f.imports() {
			if to := top(folder + "/"); to != from {
				if imports[from] == nil {
					imports[from] = map[string]bool{}
				}
				imports[from][to] = true
			}
		}
	}
	for _, start := range slices.Sorted(maps.Keys(imports)) {
		if cycle := cycleFrom(start, start, imports, map[string]bool{}); cycle != nil {
			t.Errorf("%s imports itself by %s", start, strings.Join(cycle, ", "))
		}
	}
}

// top returns the folder at the root that contains a path.
func top(file string) string {
	folder, _, inside := strings.Cut(file, "/")
	if !inside {
		return "main"
	}
	return folder
}

// cycleFrom returns a path of imports from a folder back to the start, or nil.
func cycleFrom(folder, start string, imports map[string]map[string]bool, seen map[string]bool) []string {
	seen[folder] = true
	for _, next := range slices.Sorted(maps.Keys(imports[folder])) {
		if next == start {
			return []string{folder}
		}
		if !seen[next] {
			if way := cycleFrom(next, start, imports, seen); way != nil {
				return append([]string{folder}, way...)
			}
		}
	}
	return nil
}

// source parses all Go files of the repository, except generated ones.
func source(t *testing.T) []file {
	t.Helper()
	const root = "../.."
	var files []file
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"node_modules", "testdata", "bin", "dist"}, entry.Name())) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(parsed) {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		files = append(files, file{filepath.ToSlash(relative), parsed})
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(files), 100, "the repository's files")
	return files
}

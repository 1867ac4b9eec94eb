package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/programtest"
)

// TestBadStackRegistersNothing: an error in a stack file is found before the first resource.
func TestBadStackRegistersNothing(t *testing.T) {
	for problem, c := range map[string]struct{ file, key, value string }{
		"persia:nvidiadriver: unknown key; did you mean persia:nvidiaDriver?": {"config:\n  persia:nvidiadriver: {}\n", "persia:machineTypes", "{}"},
		"persia:jobs: Invalid value":                                          {"config: {}\n", "persia:jobs", "{}"},
	} {
		t.Run(problem, func(t *testing.T) {
			project := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(project, "Pulumi.stack.yaml"), []byte(c.file), 0o600))
			configuration := programtest.ReadStack(t, "Pulumi.dev.yaml")
			configuration[c.key] = c.value
			recorder, err := programtest.Run(t, pulumi.RunInfo{Config: configuration, RootDirectory: project}, nil)
			require.ErrorContains(t, err, problem)
			assert.Empty(t, recorder.URNs())
		})
	}
}

// TestPulumiYAML checks that Pulumi.yaml declares exactly the keys that the program reads, with a description.
func TestPulumiYAML(t *testing.T) {
	type key struct {
		Type, Description string
		Default           any
	}
	var project struct {
		Name    string
		Runtime struct {
			Name    string
			Options map[string]string
		}
		Config   map[string]key
		Template struct{ Config map[string]key }
	}
	readYAML(t, "Pulumi.yaml", &project)
	// `pulumi new` says here where a project comes from.
	delete(project.Config, "pulumi:tags")
	assert.Equal(t, "persia", project.Name)
	assert.Equal(t, "go", project.Runtime.Name)
	assert.Equal(t, map[string]string{"buildTarget": "bin/program"}, project.Runtime.Options,
		"Pulumi compiles the program, so that it never runs an old one")
	assert.ElementsMatch(t, config.Keys(), slices.Collect(maps.Keys(project.Config)))
	for name, declared := range project.Config {
		assert.NotEmpty(t, declared.Description, name)
		// Pulumi itself refuses a stack file without a key that has no default.
		assert.Equal(t, slices.Contains([]string{"persia:cluster", "persia:nodePools", "persia:jobs"}, name), declared.Default == nil, "a default of %s: %v", name, declared.Default)
	}
	for name, question := range project.Template.Config {
		assert.NotEmpty(t, question.Description, name)
		assert.Equal(t, "string", project.Config[name].Type, "`pulumi new` writes text, under the key as it is")
	}
}

// TestEveryKeyIsRead: the program reads the fields of all keys of stack files, so that none is without effect.
func TestEveryKeyIsRead(t *testing.T) {
	keys, read := map[string]string{}, map[string]bool{"Manifest": true} // a manifest is read before there are fields
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "sandbox" || strings.HasPrefix(entry.Name(), ".") && path != root):
			return fs.SkipDir
		case strings.HasSuffix(path, ".yaml"): // some are templates
			text, err := os.ReadFile(path)
			for _, field := range regexp.MustCompile(`{{[^}]*\.(\w+)`).FindAllSubmatch(text, -1) {
				read[string(field[1])] = true
			}
			return err
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				read[n.Sel.Name] = true
			case *ast.Field:
				if n.Tag != nil && len(n.Names) == 1 && filepath.Dir(path) == filepath.Join(root, "config") {
					keys[n.Names[0].Name] = path
				}
			}
			return true
		})
		return nil
	}))
	require.Greater(t, len(keys), 150)
	for key, path := range keys {
		assert.True(t, read[key], "%s: nothing reads %s", path, key)
	}
}

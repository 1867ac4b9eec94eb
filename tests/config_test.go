package tests

import (
	"go/ast"
	"go/token"
	"go/types"
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
	"golang.org/x/tools/go/packages"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
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

// TestEveryKeyIsRead: the program reads the fields of all keys, so that each has an effect, and its paths name fields.
func TestEveryKeyIsRead(t *testing.T) {
	// A manifest is read before there are fields, and sources are found by their types.
	unseen := []string{"Manifest", "NFS", "ISCSI", "CSI"}
	loaded := testkit.Must(packages.Load(&packages.Config{Dir: root, Mode: packages.LoadSyntax}, "./..."))(t)
	schema := readText(t, testkit.SchemaFile)
	keys, read := map[types.Object]string{}, map[types.Object]bool{}
	all := func(of types.Type) {
		if fields, ok := of.Underlying().(*types.Struct); ok {
			for field := range fields.Fields() {
				read[field] = true
			}
		}
	}
	for _, of := range loaded {
		require.Empty(t, of.Errors)
		for _, file := range of.Syntax {
			written := map[ast.Node]bool{}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					for _, to := range n.Lhs {
						written[to] = n.Tok == token.ASSIGN
					}
				case *ast.SelectorExpr:
					read[of.TypesInfo.Uses[n.Sel]] = read[of.TypesInfo.Uses[n.Sel]] || !written[n]
				case *ast.Field:
					if n.Tag != nil && len(n.Names) == 1 && of.PkgPath == "persia/config" {
						keys[of.TypesInfo.Defs[n.Names[0]]] = of.Fset.Position(n.Pos()).String()
					}
				case *ast.CallExpr:
					if path, is := n.Fun.(*ast.SelectorExpr); is && path.Sel.Name == "Child" && of.Name != "input" {
						for _, name := range n.Args {
							name, is := name.(*ast.BasicLit)
							assert.True(t, !is || strings.Contains(schema, name.Value+": {"), "%s: no field", of.Fset.Position(n.Pos()))
						}
					}
					if function := of.TypesInfo.Types[n.Fun]; function.IsType() { // a conversion
						all(of.TypesInfo.TypeOf(n.Args[0]))
					}
				}
				return true
			})
		}
	}
	manifests := testkit.Must(filepath.Glob(filepath.Join(root, "[iw]*/*/*.yaml")))(t) // of infra and workload
	filledIn := ""
	for _, manifest := range manifests {
		filledIn += strings.Join(regexp.MustCompile(`{{.*?}}`).FindAllString(testkit.Read(t, manifest), -1), " ")
	}
	require.Greater(t, len(keys), 150)
	for key, at := range keys {
		isFilledIn := regexp.MustCompile(`\.` + key.Name() + `\b`).MatchString(filledIn)
		assert.NotEqual(t, read[key] || isFilledIn, slices.Contains(unseen, key.Name()), "%s: what reads %s?", at, key.Name())
	}
}

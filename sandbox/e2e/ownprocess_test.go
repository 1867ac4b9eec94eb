package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSandboxesAreAlone: each test that has a sandbox, by itself or by a helper, begins
// with alone. A sandbox would change the working directory of the tests beside it.
func TestSandboxesAreAlone(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var functions []*ast.FuncDecl
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				functions = append(functions, function)
			}
		}
	}
	// What has a sandbox, by its name. That of a method has a dot before it.
	has := map[string]bool{"sandbox.New": true, "sandboxCommand": true}
	for known := 0; known != len(has); {
		known = len(has)
		for _, function := range functions {
			name := function.Name.Name
			if function.Recv != nil {
				name = "." + name
			}
			if callsBesideOthers(function, has) {
				has[name] = true
			}
		}
	}
	require.True(t, has["newSandbox"], "by newSandboxOf and openSandbox")
	for name := range has {
		if strings.HasPrefix(name, "Test") {
			t.Errorf("%s has a sandbox, and does not begin with alone", name)
		}
	}
}

// callsBesideOthers reports whether a function calls one of those outside of a block that
// begins with alone.
func callsBesideOthers(function ast.Node, of map[string]bool) bool {
	found := false
	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BlockStmt:
			if len(node.List) > 0 {
				begin, ok := node.List[0].(*ast.IfStmt)
				return !ok || !strings.HasPrefix(types.ExprString(begin.Cond), "!alone")
			}
		case *ast.CallExpr:
			called := types.ExprString(node.Fun)
			found = found || of[called] || of[path.Ext(called)]
		}
		return true
	})
	return found
}

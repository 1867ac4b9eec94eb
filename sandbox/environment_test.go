package sandbox

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNothingChangesTheProcess: sandboxes, and the programs that they run, share a process
// in tests. Each call here changes it for all of them.
func TestNothingChangesTheProcess(t *testing.T) {
	forbidden := map[string]bool{
		"os.Chdir": true, "syscall.Chdir": true, "syscall.Fchdir": true, "syscall.Chroot": true, "syscall.Umask": true,
		"os.Setenv": true, "os.Unsetenv": true, "os.Clearenv": true, "syscall.Setenv": true, "syscall.Unsetenv": true, "syscall.Clearenv": true,
		"signal.Notify": true, "signal.NotifyContext": true, "signal.Ignore": true, "signal.Reset": true,
	}
	list, err := exec.Command("go", "list", "-deps", "-f", `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`, ".").Output()
	require.NoError(t, err)
	repository, err := filepath.Abs("..")
	require.NoError(t, err)
	files := 0
	for _, name := range strings.Fields(string(list)) {
		own, inRepository := strings.CutPrefix(name, repository+"/")
		// Package node also runs as the first process of a machine.
		if !inRepository || path.Dir(own) == "sandbox/node" {
			continue
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			if called, ok := node.(*ast.SelectorExpr); ok {
				assert.False(t, forbidden[types.ExprString(called)], "%s: %s", own, types.ExprString(called))
			}
			return true
		})
	}
	assert.Greater(t, files, 100, "the files of the sandbox and of the program")
}

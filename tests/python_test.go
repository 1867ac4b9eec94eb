package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const parsePython37 = `
import ast, sys
for path in sys.argv[1:]:
    try:
        ast.parse(open(path).read(), feature_version=(3, 7))
    except SyntaxError as error:
        print(path, error)
`

// TestPythonSyntax: images of PERSIA have Python 3.7. Another Python parses its syntax, where none is installed.
func TestPythonSyntax(t *testing.T) {
	listed, err := exec.Command("git", "-C", root, "ls-files", "*.py").Output()
	require.NoError(t, err)
	paths := strings.Fields(string(listed))
	newer := map[string]string{"walrus": "(n := 1)\n", "positional": "def f(a, /): pass\n", "text": "f'{n=}'\n"}
	for name, code := range newer {
		paths = append(paths, filepath.Join(t.TempDir(), name))
		require.NoError(t, os.WriteFile(paths[len(paths)-1], []byte(code), 0o600))
	}
	command := exec.Command("python3", append([]string{"-c", parsePython37}, paths...)...)
	command.Dir = root
	refused, err := command.Output()
	require.NoError(t, err)
	assert.Len(t, strings.Split(strings.TrimSpace(string(refused)), "\n"), len(newer), "only these, and all of them: %s", refused)
}

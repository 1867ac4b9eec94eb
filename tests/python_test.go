package tests

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first three are newer than Python 3.7.
const parsePython37 = `import ast, sys
for path in ["(n := 1)", "def f(a, /): pass", "f'{n=}'"] + sys.argv[1:]:
    try: ast.parse(open(path).read() if path.endswith(".py") else path, feature_version=(3, 7))
    except SyntaxError: print(path)
`

// TestPythonSyntax: images of PERSIA have Python 3.7. Another Python parses its syntax, where none is installed.
func TestPythonSyntax(t *testing.T) {
	listed, err := exec.Command("git", "-C", root, "ls-files", "*.py").Output()
	require.NoError(t, err)
	command := exec.Command("python3", append([]string{"-c", parsePython37}, strings.Fields(string(listed))...)...)
	command.Dir = root
	refused, err := command.Output()
	require.NoError(t, err)
	assert.Equal(t, "(n := 1)\ndef f(a, /): pass\nf'{n=}'\n", string(refused))
}

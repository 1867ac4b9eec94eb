package tests

import (
	"os/exec"
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
	command := exec.Command("sh", "-c", `exec python3 -c "$0" $(git ls-files "*.py")`, parsePython37)
	command.Dir = root
	refused, err := command.Output()
	require.NoError(t, err)
	assert.Equal(t, "(n := 1)\ndef f(a, /): pass\nf'{n=}'\n", string(refused))
}

package testkit

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/config/input"
)

// Base is a stack file that is valid. Every case starts from it.
//
//go:embed base.yaml
var Base string

// Edits are values by their paths, which are written as errors print them. A nil removes the value;
// a path one behind the end of a list adds to it.
type Edits map[string]any

// And are the edits with more, which win.
func (e Edits) And(more Edits) Edits {
	all := Edits{}
	maps.Copy(all, e)
	maps.Copy(all, more)
	return all
}

// In makes the edits in the keys of a stack file.
func (e Edits) In(t testing.TB, keys map[string]any) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(e)) {
		Edit(keys, pathElement.FindAllString(path, -1), e[path])
	}
}

// Refusal is a mistake and its error: the path, and parts of the line, such as the value and the remedy.
type Refusal = struct {
	Name  string
	Edits Edits
	Path  string
	Says  []string
}

// Refused makes each mistake in an otherwise valid stack file. Each leads to one problem, unless the name of the case
// is in leadToMore. The problem shows the value at its path, unless it is a password.
func Refused(t *testing.T, cases []Refusal, leadToMore ...string) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			_, err := Load(t, c.Edits)
			Says(t, err, c.Path, c.Says...)
			switch value := c.Edits[c.Path].(type) {
			case string, bool, int, float64:
				if !strings.HasSuffix(c.Path, ".password") {
					Says(t, err, c.Path, fmt.Sprint(value))
				}
			}
			if !slices.Contains(leadToMore, c.Name) {
				assert.Equal(t, 1, strings.Count(err.Error(), "\n"), "one mistake, one problem: %s", err)
			}
		})
	}
}

// Accepted makes edits by name in a stack file that stays valid.
func Accepted(t *testing.T, cases map[string]Edits) {
	t.Helper()
	for name, changes := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Load(t, changes)
			assert.NoError(t, err)
		})
	}
}

// Warned makes each mistake in a stack file that is valid otherwise. The program accepts the
// file, and warns at the path with all parts. Without parts, it has no warning there.
func Warned(t *testing.T, cases []Refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			s, err := Load(t, c.Edits)
			require.NoError(t, err)
			var found []string
			for _, warning := range slices.Concat(s.Warnings(), s.FirstWarnings()) {
				if strings.HasPrefix(warning, c.Path+": ") {
					found = append(found, warning)
				}
			}
			if c.Says == nil {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1, "warnings at %s of %q", c.Path, s.Warnings())
			for _, part := range c.Says {
				assert.Contains(t, found[0], part)
			}
		})
	}
}

// Says checks that an error has a line about a path, with all parts.
func Says(t *testing.T, err error, path string, parts ...string) {
	t.Helper()
	require.Error(t, err)
	for line := range strings.Lines(err.Error()) {
		if strings.HasPrefix(line, path+": ") {
			for _, part := range parts {
				assert.Contains(t, line, part)
			}
			return
		}
	}
	require.Fail(t, "no problem at "+path, err.Error())
}

// Load loads the base after some edits.
func Load(t testing.TB, changes Edits) (*config.Stack, error) {
	t.Helper()
	return config.Load(File(t, changes), embed.FS{})
}

// File is the base after some edits, as Pulumi hands it out. What the program takes of it, an editor must take too.
func File(t testing.TB, changes Edits) func(string) (string, bool) {
	t.Helper()
	keys := Parse(t, Base)
	changes.In(t, keys)
	if _, err := config.Load(keys.Get, embed.FS{}); err == nil {
		AssertInSchema(t, keys)
	}
	return keys.Get
}

// Root is the root of the repository, above the folder that tests run in.
func Root(t testing.TB) string {
	t.Helper()
	root := "."
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root
		}
		absolute, err := filepath.Abs(root)
		require.NoError(t, err)
		require.NotEqual(t, "/", absolute, "no go.mod above the test")
		root = filepath.Join(root, "..")
	}
}

// Parse reads the keys of a stack file.
func Parse(t testing.TB, text string) input.Values {
	t.Helper()
	file, err := input.ParseStackFile([]byte(text), config.Namespace)
	require.NoError(t, err)
	return file.Config
}

// pathElement is a name or an index in a path.
var pathElement = regexp.MustCompile(`[^.\[\]]+`)

// Edit returns a value in which the value at a path is replaced. It panics at a path that cannot be.
func Edit(in any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch in := in.(type) {
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err)
		}
		if i == len(in) {
			in = append(in, nil)
		}
		in[i] = Edit(in[i], path[1:], value)
		return in
	case map[string]any:
		in[path[0]] = Edit(in[path[0]], path[1:], value)
		if in[path[0]] == nil {
			delete(in, path[0])
		}
		return in
	case Edits:
		return Edit(map[string]any(in), path, value)
	case nil:
		return map[string]any{path[0]: Edit(nil, path[1:], value)}
	}
	panic(fmt.Sprintf("nothing to edit: %v in %v", path, in))
}

// SchemaFile is the name of the JSON Schema of stack files in the root of the repository.
const SchemaFile = "stack.schema.json"

var (
	compiled *jsonschema.Schema
	compile  sync.Once // it takes 20 ms
)

// CheckSchema checks the text of a stack file. The error lists the problems that an editor marks.
func CheckSchema(t testing.TB, text []byte) error {
	t.Helper()
	compile.Do(func() {
		var err error
		compiled, err = jsonschema.NewCompiler().Compile(filepath.Join(Root(t), SchemaFile))
		require.NoError(t, err)
	})
	var file any
	require.NoError(t, yaml.UnmarshalStrict(text, &file))
	return compiled.Validate(file)
}

// AssertInSchema checks that an editor takes keys that the program takes.
func AssertInSchema(t testing.TB, keys map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"config": keys})
	require.NoError(t, err)
	// A null is nothing for the program, and unfinished for an editor.
	if !bytes.Contains(text, []byte("null")) {
		assert.NoError(t, CheckSchema(t, text), "%s", SchemaFile)
	}
}

package testkit

import (
	"bytes"
	"embed"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
		input.Values(keys).Set(path, e[path])
		text := Must(json.Marshal(keys))(t) // no two stack files share values
		clear(keys)
		require.NoError(t, json.Unmarshal(text, &keys))
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
		require.NotEqual(t, "/", Must(filepath.Abs(root))(t), "no go.mod above the test")
		root = filepath.Join(root, "..")
	}
}

// Parse reads the keys of a stack file.
func Parse(t testing.TB, text string) input.Values {
	t.Helper()
	return Must(input.ParseStackFile([]byte(text), config.Namespace))(t).Config
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
		compiled = Must(jsonschema.NewCompiler().Compile(filepath.Join(Root(t), SchemaFile)))(t)
	})
	var file any
	require.NoError(t, yaml.UnmarshalStrict(text, &file))
	return compiled.Validate(file)
}

// AssertInSchema checks that an editor takes keys that the program takes.
func AssertInSchema(t testing.TB, keys map[string]any) {
	t.Helper()
	text := Must(json.Marshal(map[string]any{"config": keys}))(t)
	// A null is nothing for the program, and unfinished for an editor.
	if !bytes.Contains(text, []byte("null")) {
		assert.NoError(t, CheckSchema(t, text), "%s", SchemaFile)
	}
}

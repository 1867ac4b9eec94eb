package testkit

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

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

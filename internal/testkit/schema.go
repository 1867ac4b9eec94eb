package testkit

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// SchemaFile is the schema's name in the root of the repository.
const SchemaFile = "stack.schema.json"

// Schema is the JSON Schema of stack files, which editors check them with.
type Schema struct{ compiled *jsonschema.Schema }

// compiled are schemas by their paths. To compile one takes 20 ms.
var compiled sync.Map

// ReadSchema reads the schema from the root of the repository, once.
func ReadSchema(t testing.TB, root string) Schema {
	t.Helper()
	path := filepath.Join(root, SchemaFile)
	if schema, ok := compiled.Load(path); ok {
		return schema.(Schema)
	}
	schema, err := jsonschema.NewCompiler().Compile(path)
	require.NoError(t, err)
	compiled.Store(path, Schema{schema})
	return Schema{schema}
}

// Check checks the text of a stack file. The error lists the problems that an editor marks.
func (s Schema) Check(t testing.TB, text []byte) error {
	t.Helper()
	var file any
	require.NoError(t, yaml.UnmarshalStrict(text, &file))
	return s.compiled.Validate(file)
}

// CheckConfig checks the keys of a stack file, and their values. A null is left out
// before: the program takes it for nothing, and an editor for something unfinished.
func (s Schema) CheckConfig(t testing.TB, config map[string]any) error {
	t.Helper()
	text, err := json.Marshal(map[string]any{"config": config})
	require.NoError(t, err)
	var file any
	require.NoError(t, json.Unmarshal(text, &file))
	return s.compiled.Validate(withoutNulls(file))
}

func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, inner := range value {
			if inner != nil {
				kept[name] = withoutNulls(inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, inner := range value {
			kept[i] = withoutNulls(inner)
		}
		return kept
	}
	return value
}

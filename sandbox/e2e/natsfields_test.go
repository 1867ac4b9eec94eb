package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestOperatorReadsEveryField compares the NatsClusters that the program writes with the operator's
// own type, in the source that the toolchain compiles. The operator silently ignores other fields.
func TestOperatorReadsEveryField(t *testing.T) {
	types := operatorTypes(t)
	files, err := filepath.Glob(filepath.Join(repository, "workload", "nats", "testdata", "natscluster-*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 3, "PERSIA's own two, and one with everything")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var object map[string]any
			require.NoError(t, yaml.Unmarshal(text, &object))
			assert.Empty(t, types.unread("ClusterSpec", "spec", object["spec"]))
		})
	}
	t.Run("the seed's own resources", func(t *testing.T) {
		assert.Equal(t, []string{"spec.resources"}, types.unread("ClusterSpec", "spec", map[string]any{"size": 1, "resources": map[string]any{}}))
	})
}

// structTypes are the fields of structs: by the name of the struct and their name in
// JSON, the name of their type. A type of another package is Kubernetes' own.
type structTypes map[string]map[string]string

func operatorTypes(t *testing.T) structTypes {
	t.Helper()
	find := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/nats-io/nats-operator")
	find.Dir = filepath.Join(repository, "sandbox", "toolchain", "nats-operator")
	find.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	dir, err := find.Output()
	require.NoError(t, err)
	source := filepath.Join(strings.TrimSpace(string(dir)), "pkg", "apis", "nats", "v1alpha2", "cluster.go")
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	types := structTypes{}
	ast.Inspect(file, func(node ast.Node) bool {
		if declared, ok := node.(*ast.TypeSpec); ok {
			if s, ok := declared.Type.(*ast.StructType); ok {
				types[declared.Name.Name] = fieldsOf(s)
			}
		}
		return true
	})
	require.Contains(t, types, "ClusterSpec")
	return types
}

func fieldsOf(s *ast.StructType) map[string]string {
	fields := map[string]string{}
	for _, field := range s.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		kind := field.Type
		if pointer, ok := kind.(*ast.StarExpr); ok {
			kind = pointer.X
		}
		fields[name] = ""
		if own, ok := kind.(*ast.Ident); ok {
			fields[name] = own.Name
		}
	}
	return fields
}

// unread returns the paths of value for which a struct has no field.
func (s structTypes) unread(name, path string, value any) []string {
	fields, known := s[name]
	object, ok := value.(map[string]any)
	if !known || !ok {
		return nil
	}
	var unread []string
	for field, value := range object {
		kind, ok := fields[field]
		if !ok {
			unread = append(unread, path+"."+field)
			continue
		}
		unread = append(unread, s.unread(kind, path+"."+field, value)...)
	}
	return unread
}

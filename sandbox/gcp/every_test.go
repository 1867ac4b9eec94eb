package gcp

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
)

// TestEveryFieldIsSet: the stack file that is to have every setting of a cluster and of
// its pools has them.
func TestEveryFieldIsSet(t *testing.T) {
	file := stackFile(t, "testdata/Pulumi.every.yaml")
	pools, _ := file["persia:nodePools"].([]any)
	for _, of := range []struct {
		kind reflect.Type
		in   []any
	}{
		{reflect.TypeFor[config.Cluster](), []any{file["persia:cluster"]}},
		{reflect.TypeFor[config.Pool](), pools},
	} {
		set := map[string]bool{}
		for _, object := range of.in {
			for path := range paths(t, object) {
				set[path] = true
			}
		}
		for _, path := range leaves(of.kind, "") {
			// replace is a permission for one update, and no setting of the cluster.
			if !strings.HasPrefix(path, "existing.") && path != "replace" {
				assert.True(t, set[path], "%s of %s", path, of.kind)
			}
		}
	}
}

// paths returns the paths of all values in an object.
func paths(t *testing.T, object any) map[string]bool {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	var in values
	require.NoError(t, json.Unmarshal(text, &in))
	found := map[string]bool{}
	for name, value := range in {
		found[name] = true
		if _, nested := value.(values); nested {
			for inner := range paths(t, value) {
				found[name+"."+inner] = true
			}
		}
	}
	return found
}

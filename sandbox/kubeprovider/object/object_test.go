package object

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func properties(t *testing.T, manifest string) resource.PropertyMap {
	t.Helper()
	var content map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &content))
	return resource.NewPropertyMapFromMap(content)
}

func objectIn(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj, err := Of(properties(t, manifest))
	require.NoError(t, err)
	return obj
}

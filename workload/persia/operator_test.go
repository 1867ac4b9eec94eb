package persia

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"persia/internal/testkit"
	"persia/workload/persia/persiav1"
)

// TestDefinition compares the definition with upstream's: the names, the required fields, and quantities as text.
func TestDefinition(t *testing.T) {
	crd := testkit.Must(persiaJobs())(t)
	assert.Equal(t, persiav1.Plural+"."+persiav1.Group, crd.Name)
	assert.Equal(t, persiav1.Group, crd.Spec.Group)
	assert.Equal(t, extensionsv1.NamespaceScoped, crd.Spec.Scope)
	assert.Equal(t, persiav1.Kind, crd.Spec.Names.Kind)
	assert.Equal(t, persiav1.Plural, crd.Spec.Names.Plural)
	require.Len(t, crd.Spec.Versions, 1)
	version := crd.Spec.Versions[0]
	assert.Equal(t, persiav1.Version, version.Name)
	assert.True(t, version.Served && version.Storage)

	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	assert.Equal(t, []string{"persiaEnv"}, spec.Required)
	assert.ElementsMatch(t, []string{"PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG"}, spec.Properties["persiaEnv"].Required)
	for name, required := range map[string][]string{
		"nnWorker":                 {"replicas", "nprocPerNode"},
		"dataloader":               {"replicas"},
		"embeddingWorker":          {"replicas"},
		"embeddingParameterServer": {"replicas"},
	} {
		role := spec.Properties[name]
		assert.ElementsMatch(t, required, role.Required, name)
		assert.Equal(t, 0.0, *role.Properties["replicas"].Minimum, name)
		limit := role.Properties["resources"].Properties["limits"].AdditionalProperties.Schema
		assert.Equal(t, "string", limit.Type, name)
		assert.NotEmpty(t, limit.Pattern, name)
	}
	assert.NotContains(t, string(testkit.Must(json.Marshal(crd))(t)), "int-or-string")
	assert.Contains(t, string(persiaJobsText), "int-or-string", "what there is to take away")
}

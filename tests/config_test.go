package tests

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestBadStackRegistersNothing has a problem in each part of a stack: the last
// one must be found before the first resource.
func TestBadStackRegistersNothing(t *testing.T) {
	cases := map[string]struct {
		key     string
		change  func(value any)
		problem string
	}{
		"cluster": {"persia:cluster", func(value any) { value.(map[string]any)["region"] = "" }, "persia:cluster.region"},
		"node pools": {"persia:nodePools", func(value any) {
			value.([]any)[0].(map[string]any)["nodes"] = -1
		}, "persia:nodePools[0].nodes"},
		"driver":  {"persia:nvidiaDriver", func(value any) { value.(map[string]any)["installer"] = "both" }, "persia:nvidiaDriver.installer"},
		"volumes": {"persia:storage", func(value any) { value.([]any)[0].(map[string]any)["size"] = "big" }, "persia:storage[0].size"},
		"nats":    {"persia:nats", func(value any) { value.(map[string]any)["maxPayload"] = 67108865 }, "persia:nats.maxPayload"},
		"jobs": {"persia:jobs", func(value any) {
			programtest.Field(value.([]any)[0], "embeddingWorker")["replcas"] = 3
		}, "persia:jobs[0].embeddingWorker.replcas"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "prod")
			programtest.Edit(t, configuration, test.key, test.change)
			recorder, err := programtest.Deploy(t, configuration)
			require.ErrorContains(t, err, test.problem)
			assert.Empty(t, recorder.URNs())
		})
	}
}

// TestMisspeltKey: an optional key that is misspelt is refused, and not left out.
func TestMisspeltKey(t *testing.T) {
	project := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(project, "Pulumi.stack.yaml"), []byte("config:\n  persia:nvidiadriver: {}\n"), 0o600))
	recorder, err := programtest.DeployIn(t, project, programtest.ReadStack(t, "dev"))
	require.ErrorContains(t, err, "persia:nvidiadriver: unknown key; did you mean persia:nvidiaDriver?")
	assert.Empty(t, recorder.URNs())
}

// TestOptionalKeys: keys with an obvious answer may be left out.
func TestOptionalKeys(t *testing.T) {
	configuration := programtest.ReadStack(t, "dev")
	for _, key := range []string{"persia:machineTypes", "persia:nvidiaDriver", "persia:pedl"} {
		delete(configuration, key)
	}
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	assert.NotEmpty(t, recorder.All(t, testkit.StatefulSet))
}

// TestPulumiYAML checks that Pulumi.yaml declares exactly the keys that the program reads, with a
// description.
func TestPulumiYAML(t *testing.T) {
	var project struct {
		Name    string `json:"name"`
		Runtime struct {
			Name    string            `json:"name"`
			Options map[string]string `json:"options"`
		} `json:"runtime"`
		Config map[string]struct {
			Type        string `json:"type"`
			Default     any    `json:"default"`
			Description string `json:"description"`
		} `json:"config"`
		Template struct {
			Config map[string]struct {
				Description string `json:"description"`
			} `json:"config"`
		} `json:"template"`
	}
	readYAML(t, "Pulumi.yaml", &project)
	// `pulumi new` says here where a project comes from.
	delete(project.Config, "pulumi:tags")
	assert.Equal(t, "persia", project.Name)
	assert.Equal(t, "go", project.Runtime.Name)
	assert.Equal(t, map[string]string{"buildTarget": "bin/program"}, project.Runtime.Options,
		"Pulumi compiles the program, so that it never runs an old one")
	assert.ElementsMatch(t, config.Keys(), slices.Collect(maps.Keys(project.Config)))
	for key, declared := range project.Config {
		assert.NotEmpty(t, declared.Description, key)
		// Pulumi itself refuses a stack file without a key that has no default.
		required := slices.Contains(config.RequiredKeys(), key)
		assert.Equal(t, required, declared.Default == nil, "a default of %s: %v", key, declared.Default)
	}
	for key, question := range project.Template.Config {
		assert.NotEmpty(t, question.Description, key)
		assert.Equal(t, "string", project.Config[key].Type, "`pulumi new` writes text, under the key as it is")
	}
}

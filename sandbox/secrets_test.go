package sandbox

import (
	"testing"

	"persia/config/input"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestTakeSecrets checks that encrypted values stay secrets in the sandbox's copy, and that other values do not change.
func TestTakeSecrets(t *testing.T) {
	file, err := input.ParseStackFile([]byte(`config:
  persia:pedl: {registry: {password: {secure: "v1:abc:def"}}, postgresql: {external: {host: plain, password: {secure: your-password}}}}
  token: {secure: AAABAO}
`), "persia")
	require.NoError(t, err)
	left, secrets := takeSecrets(file.Config)
	first := secrets["persia:pedl.registry.password"]
	assert.Regexp(t, "^sandbox-[0-9a-f]{12}$", first.Value)
	assert.Equal(t, auto.ConfigMap{
		"persia:pedl.registry.password":            {Value: first.Value, Secret: true},
		"persia:pedl.postgresql.external.password": {Value: "your-password", Secret: true},
		"persia:token": {Value: standIn("AAABAO"), Secret: true},
	}, secrets)
	assert.NotEqual(t, first.Value, standIn("v1:abc:other"), "another secret is a change")
	text, err := yaml.Marshal(left)
	require.NoError(t, err)
	assert.YAMLEq(t, `
persia:pedl: {registry: {password: ""}, postgresql: {external: {host: plain, password: ""}}}
persia:token: ""
`, string(text))
}

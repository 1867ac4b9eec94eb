package input

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const written = `
encryptionsalt: v1:salt
environment: [shared]
config:
  gcp:region: us-central1
  project: my-project
  persia:nodePools: [{name: gpu, nodes: 2}]
  persia:nats:
    users:
      - {name: a, password: plain}
      - {name: b, password: {secure: v1:abc}}
  persia:token: {secure: v1:def}
`

func TestRead(t *testing.T) {
	files := fstest.MapFS{StackFileName("dev"): {Data: []byte(written)}, "broken": {Data: []byte("config: {")}, "list": {Data: []byte("config: [1]")}}
	file, err := ReadStackFile(files, "Pulumi.dev.yaml", "persia")
	require.NoError(t, err)
	assert.Equal(t, "v1:salt", file.Settings[EncryptionSalt])
	assert.Equal(t, []any{"shared"}, file.Settings[Environment])
	assert.Equal(t, []string{"gcp:region", "persia:nats", "persia:nodePools", "persia:project", "persia:token"}, slices.Sorted(maps.Keys(file.Config)))
	assert.Equal(t, map[string]bool{"persia:nats": true, "persia:token": true}, file.Config.Secrets())

	text, err := file.Text()
	require.NoError(t, err)
	again, err := ParseStackFile(text, "another")
	require.NoError(t, err)
	assert.Equal(t, file, again, "keys keep their namespace")

	_, err = ReadStackFile(files, "broken", "persia")
	assert.ErrorContains(t, err, "broken: ")
	_, err = ReadStackFile(files, "list", "persia")
	assert.EqualError(t, err, "list: config: write the keys of the stack and their values below it")
	_, err = ReadStackFile(files, "Pulumi.prod.yaml", "persia")
	assert.ErrorContains(t, err, "Pulumi.prod.yaml")
}

func TestValues(t *testing.T) {
	file, err := ParseStackFile([]byte(written), "persia")
	require.NoError(t, err)
	text, ok := file.Config.Get("persia:project")
	assert.True(t, ok)
	assert.Equal(t, "my-project", text, "text as it is")
	text, ok = file.Config.Get("persia:nodePools")
	assert.True(t, ok)
	assert.JSONEq(t, `[{"name": "gpu", "nodes": 2}]`, text, "anything else as JSON")
	_, ok = file.Config.Get("persia:jobs")
	assert.False(t, ok)

	opened := map[string]string{}
	values := file.Config.Open(func(path []any, ciphertext string) string {
		opened[fmt.Sprint(path)] = ciphertext
		return "opened"
	})
	assert.Equal(t, map[string]string{"[persia:nats users 1 password]": "v1:abc", "[persia:token]": "v1:def"}, opened)
	assert.Equal(t, map[string]string{
		"gcp:region": "us-central1", "persia:project": "my-project", "persia:token": "opened",
		"persia:nodePools": `[{"name":"gpu","nodes":2}]`,
		"persia:nats":      `{"users":[{"name":"a","password":"plain"},{"name":"b","password":"opened"}]}`,
	}, values.Texts())
	assert.Equal(t, "v1:def", file.Config.Decrypted()["persia:token"])
	assert.Equal(t, map[string]any{"secure": "v1:def"}, file.Config["persia:token"], "the values stay as they are")
}

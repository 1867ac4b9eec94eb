package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config/input"
	"persia/internal/testkit"
)

// TestStackFile: Pulumi adds a salt to its copy of the stack file, and without it cannot read the state that it has
// encrypted. A stack whose secrets only its owner can read comes up all the same.
func TestStackFile(t *testing.T) {
	project, dir := t.TempDir(), t.TempDir()
	original, copied := filepath.Join(project, "Pulumi.dev.yaml"), filepath.Join(dir, "Pulumi.dev.yaml")
	write(t, original, "config:\n  persia:project: first\n")
	s := Options{Stacks: project, Stack: "dev"}
	testkit.Must(s.writeStackFile(dir))(t)
	write(t, copied, "encryptionsalt: v1:salt\nconfig:\n  persia:project: first\n")
	write(t, original, `
secretsprovider: gcpkms://projects/p
encryptedkey: a2V5
config:
  persia:project: second
  persia:pedl: {registry: {user: a, password: {secure: v1:abc}}}
`)
	taken := testkit.Must(s.writeStackFile(dir))(t)
	assert.Equal(t, auto.ConfigMap{"persia:pedl.registry.password": {Value: standIn("v1:abc"), Secret: true}}, taken)
	got := testkit.Must((Options{Stacks: dir, Stack: "dev"}).read())(t)
	registry := map[string]any{"user": "a", "password": ""}
	assert.Equal(t, input.StackFile{
		Settings: map[string]any{"encryptionsalt": "v1:salt"},
		Config:   input.Values{"persia:project": "second", "persia:pedl": map[string]any{"registry": registry}},
	}, got)
}

// TestCheck: the sandbox refuses none of the stacks that the program accepts.
func TestCheck(t *testing.T) {
	for _, pattern := range []string{"../Pulumi.*.yaml", "../examples/Pulumi.*.yaml"} {
		files := testkit.Must(filepath.Glob(pattern))(t)
		require.NotEmpty(t, files)
		for _, file := range files {
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "Pulumi."), ".yaml")
			s := Sandbox{options: Options{Stacks: filepath.Dir(file), Stack: name}}
			_, err := s.Config()
			assert.NoError(t, err, file)
		}
	}
}

// TestStacksHaveAFolder: stack files are next to Pulumi.yaml, or in another folder.
func TestStacksHaveAFolder(t *testing.T) {
	project := t.TempDir()
	examples := filepath.Join(project, "examples")
	require.NoError(t, os.Mkdir(examples, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(examples, "Pulumi.spot.yaml"), nil, 0o600))
	_, err := New(Options{Project: project, Stack: "spot"})
	require.ErrorContains(t, err, `there is no stack "spot"`)
	require.ErrorContains(t, err, "write STACKS=examples")
	_, err = New(Options{Project: project, Stacks: examples, Stack: "spat"})
	require.ErrorContains(t, err, "there are spot")
	s := testkit.Must(New(Options{Project: project, Stacks: examples, Stack: "spot"}))(t)
	assert.Equal(t, examples, s.options.Stacks)
	assert.Equal(t, "STACKS=examples STACK=spot", s.Variables())

	s = testkit.Must(New(Options{Project: examples, Stack: "spot"}))(t)
	assert.Equal(t, examples, s.options.Stacks)
	assert.Equal(t, "STACK=spot", s.Variables())

	spaced := filepath.Join(project, "my stacks")
	require.NoError(t, os.Rename(examples, spaced))
	s = testkit.Must(New(Options{Project: project, Stacks: spaced, Stack: "spot"}))(t)
	assert.Equal(t, "STACKS='my stacks' STACK=spot", s.Variables())
	for _, target := range []string{"up", "preview", "down", "status", "kubeconfig", "comment"} {
		recipe := testkit.Must(exec.Command("sh", "-c", "make -C .. -n "+target+" "+s.Variables()).Output())(t)
		assert.Contains(t, string(recipe), "--stacks 'my stacks'")
	}
}

func TestBrief(t *testing.T) {
	assert.EqualError(t, brief(errors.New("failed to run update: exit status 1\ncode: 255\nstdout: a lot")),
		"failed to run update: exit status 1; its output is above")
	assert.EqualError(t, brief(errors.New("no such thing")), "no such thing")
}

// TestReservedNames checks that a stack never shares its folder with other files, which Down would remove.
func TestReservedNames(t *testing.T) {
	const refused = "rename the stack"
	for name, says := range map[string]string{"storage": refused, "bin": refused, "images": refused, "e2e": refused, "dev": "", "storages": ""} {
		project := t.TempDir()
		write(t, filepath.Join(project, "Pulumi."+name+".yaml"), "")
		_, err := New(Options{Project: project, Stack: name, Dir: t.TempDir()})
		testkit.Fails(t, err, says, name)
	}
}

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
	text := testkit.Must(yaml.Marshal(left))(t)
	assert.YAMLEq(t, `
persia:pedl: {registry: {password: ""}, postgresql: {external: {host: plain, password: ""}}}
persia:token: ""
`, string(text))
}

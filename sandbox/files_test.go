package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"persia/config/input"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStackFile: Pulumi adds a salt to its copy of the stack file, and without it cannot read the state that it has
// encrypted. A stack whose secrets only its owner can read comes up all the same.
func TestStackFile(t *testing.T) {
	project, dir := t.TempDir(), t.TempDir()
	original, copied := filepath.Join(project, "Pulumi.dev.yaml"), filepath.Join(dir, "Pulumi.dev.yaml")
	write(t, original, "config:\n  persia:project: first\n")
	s := source{stacks: project, stack: "dev"}
	_, err := s.writeStackFile(dir)
	require.NoError(t, err)
	write(t, copied, "encryptionsalt: v1:salt\nconfig:\n  persia:project: first\n")
	write(t, original, `
secretsprovider: gcpkms://projects/p
encryptedkey: a2V5
config:
  persia:project: second
  persia:pedl: {registry: {user: a, password: {secure: v1:abc}}}
`)
	taken, err := s.writeStackFile(dir)
	require.NoError(t, err)
	assert.Equal(t, auto.ConfigMap{"persia:pedl.registry.password": {Value: standIn("v1:abc"), Secret: true}}, taken)
	got, err := (source{stacks: dir, stack: "dev"}).read()
	require.NoError(t, err)
	registry := map[string]any{"user": "a", "password": ""}
	assert.Equal(t, input.StackFile{
		Settings: map[string]any{"encryptionsalt": "v1:salt"},
		Config:   input.Values{"persia:project": "second", "persia:pedl": map[string]any{"registry": registry}},
	}, got)
}

// TestCheck: the sandbox refuses none of the stacks that the program accepts.
func TestCheck(t *testing.T) {
	for _, pattern := range []string{"../Pulumi.*.yaml", "../examples/Pulumi.*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "Pulumi."), ".yaml")
			s := Sandbox{source: source{stacks: filepath.Dir(file), stack: name}}
			_, err = s.Config()
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
	s, err := New(Options{Project: project, Stacks: examples, Stack: "spot"})
	require.NoError(t, err)
	assert.Equal(t, examples, s.options.Stacks)
	assert.Equal(t, "STACKS=examples STACK=spot", s.Variables())

	s, err = New(Options{Project: examples, Stack: "spot"})
	require.NoError(t, err)
	assert.Equal(t, examples, s.options.Stacks)
	assert.Equal(t, "STACK=spot", s.Variables())

	spaced := filepath.Join(project, "my stacks")
	require.NoError(t, os.Rename(examples, spaced))
	s, err = New(Options{Project: project, Stacks: spaced, Stack: "spot"})
	require.NoError(t, err)
	assert.Equal(t, "STACKS='my stacks' STACK=spot", s.Variables())
	for _, target := range []string{"up", "preview", "down", "status", "kubeconfig", "comment"} {
		recipe, err := exec.Command("sh", "-c", "make -C .. -n "+target+" "+s.Variables()).Output()
		require.NoError(t, err)
		assert.Contains(t, string(recipe), "--stacks 'my stacks'")
	}
}

func TestBrief(t *testing.T) {
	assert.EqualError(t, brief(errors.New("failed to run update: exit status 1\ncode: 255\nstdout: a lot")),
		"failed to run update: exit status 1; its output is above")
	assert.EqualError(t, brief(errors.New("no such thing")), "no such thing")
}

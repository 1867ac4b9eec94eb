package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPreflight(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	const repository = "../.."
	wrong := t.TempDir()
	for name, text := range map[string]string{"Pulumi.yaml": "name: persia\n", "Pulumi.dev.yaml": "config: {persia:project: my-project}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(wrong, name), []byte(text), 0o600))
	}
	cases := map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":             {[]string{"--help"}, 0, "Exit codes:", ""},
		"missing":          {[]string{"--dir", repository, "--stack", "prod", "--offline"}, 1, "missing    gke-gcloud-auth-plugin ", ""},
		"an unknown stack": {[]string{"--dir", repository, "--stack", "nowhere"}, 2, "", "persia preflight: there is no stack \"nowhere\""},
		"a wrong stack":    {[]string{"--dir", wrong, "--offline"}, 2, "", "persia:jobs: Required value"},
		"an unknown flag":  {[]string{"--ofline"}, 2, "", "unknown flag: --ofline"},
		"an argument":      {[]string{"prod"}, 2, "", `unknown command "prod" for "persia preflight"`},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, test.code, run(t.Context(), append([]string{"preflight"}, test.args...), &stdout, &stderr), &stderr)
			assert.Contains(t, stdout.String(), test.stdout)
			assert.Contains(t, stderr.String(), test.stderr)
		})
	}
}

func TestComment(t *testing.T) {
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"a preview that fails": {[]string{"comment", "--stack", "dev", "--title", "Drift", "--", "sh", "-c", "echo 'error: no'; exit 7"}, 7, "## Drift of stack dev: failed\n", "error: no"},
		"no such command":      {[]string{"comment", "--stack", "dev", "--", "./nowhere"}, 1, "", "persia comment: "},
		"no stack":             {[]string{"comment"}, 2, "", "persia comment: required flag(s) \"stack\" not set"},
		"another command":      {[]string{"refresh"}, 2, "", `persia: unknown command "refresh" for "persia"`},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, test.code, run(t.Context(), test.args, &stdout, &stderr), &stderr)
			assert.Contains(t, stdout.String(), test.stdout)
			assert.Contains(t, stderr.String(), test.stderr)
		})
	}
}

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExitCodes(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Chdir("../..")
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":                 {[]string{"preflight", "--help"}, 0, "Exit codes:", ""},
		"missing":              {[]string{"preflight", "--stack", "prod"}, 1, "missing    gke-gcloud-auth-plugin ", ""},
		"an unknown stack":     {[]string{"preflight", "--stack", "nowhere"}, 2, "", "persia preflight: there is no stack \"nowhere\""},
		"an unknown flag":      {[]string{"preflight", "--stacks"}, 2, "", "unknown flag: --stacks"},
		"an argument":          {[]string{"preflight", "prod"}, 2, "", `unknown command "prod" for "persia preflight"`},
		"a preview that fails": {[]string{"comment", "--stack", "dev", "--title", "Drift", "--", "/bin/sh", "-c", "echo 'error: no'; exit 7"}, 7, "## Drift of stack dev: failed\n", "error: no"},
		"no such command":      {[]string{"comment", "--stack", "dev", "--", "./nowhere"}, 1, "", "persia comment: fork/exec ./nowhere"},
		"no stack":             {[]string{"comment"}, 2, "", "persia comment: no stack is selected: write --stack, or run `pulumi stack select`"},
		"version":              {[]string{"--version"}, 0, "persia version ", ""},
		"completion":           {[]string{"completion", "bash"}, 0, "__start_persia", ""},
		"another command":      {[]string{"refresh"}, 2, "", `persia: unknown command "refresh" for "persia"`},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, test.code, run(t.Context(), test.args, &stdout, &stderr), &stderr)
			assert.Contains(t, stdout.String(), test.stdout)
			assert.Contains(t, stderr.String(), test.stderr)
		})
	}
	for _, command := range []string{"preflight", "status", "preview", "comment", "recover", "prices"} {
		var stdout bytes.Buffer
		assert.Zero(t, run(t.Context(), []string{command, "--help"}, &stdout, &stdout))
		assert.Contains(t, stdout.String(), "Examples:\n  persia "+command)
	}
}

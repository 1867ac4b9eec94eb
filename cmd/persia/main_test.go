package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/stack/effects"
)

func TestExitCodes(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "nowhere"))
	t.Chdir("../..")
	file := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(file, []byte(written(t, costs(1), kept, planned("delete", "gcp:storage/bucket:Bucket", "data", object{}, nil),
		said("info", effects.Text([]effects.Effect{{Text: "persia:jobs[0]: the job clicks restarts", Ends: []string{"clicks-nn-worker"}}, {Text: "data stays"}})))), 0o600))
	events := func(args ...string) []string { return append(args, "--stack", "dev", "--", "/bin/cat", file) }
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":                   {[]string{"preflight", "--help"}, 0, "Exit codes:", ""},
		"missing":                {[]string{"preflight", "--stack", "prod"}, 1, "missing    gke-gcloud-auth-plugin ", ""},
		"an unknown stack":       {[]string{"preflight", "--stack", "nowhere"}, 2, "", "bin/persia preflight: there is no stack \"nowhere\""},
		"an unknown flag":        {[]string{"preflight", "--stacks"}, 2, "", "unknown flag: --stacks"},
		"an argument":            {[]string{"preflight", "prod"}, 2, "", `unknown command "prod" for "bin/persia preflight"`},
		"a preview that fails":   {[]string{"comment", "--stack", "dev", "--title", "Drift", "--", "/bin/sh", "-c", "echo 'error: no'; exit 7"}, 7, "## Drift of stack dev: failed\n", "error: no"},
		"preflight for a script": {[]string{"preflight", "--stack", "prod", "-o", "json"}, 1, `"status": "missing",`, ""},
		"a preview for a script": {events("preview", "-o", "json"), 0, `"restarts": [
    "persia:jobs[0]: the job clicks restarts"
  ],`, ""},
		"a preview that restarts a job":    {events("preview", "--fail-on", "restart"), 3, "", "held by --fail-on restart:\npersia:jobs[0]: the job clicks restarts"},
		"a preview that deletes":           {events("preview", "--fail-on", "restart,delete"), 3, "", "\n- gcp:storage/bucket:Bucket  data (delete)\n"},
		"a preview of which nothing fails": {events("preview"), 0, "\n! persia:jobs[0]: the job clicks restarts\n", ""},
		"--fail-on of something else":      {events("preview", "--fail-on", "update"), 2, "", `--fail-on: "update": write restart, delete, or both`},
		"no such command":                  {[]string{"comment", "--stack", "dev", "--", "./nowhere"}, 1, "", "bin/persia comment: fork/exec ./nowhere"},
		"no Pulumi":                        {[]string{"preview", "--stack", "dev"}, 1, "", "pulumi\": executable file not found in $PATH; install it as docs/start/"},
		"no Pulumi, and no stack":          {[]string{"comment"}, 2, "", `bin/persia comment: exec: "pulumi"`},
		"version":                          {[]string{"--version"}, 0, "bin/persia version ", ""},
		"completion":                       {[]string{"completion", "bash"}, 0, "__start_persia", ""},
		"too many parameters":              {[]string{"size", "--parameters", "1e15", "--dim", "16"}, 2, "", "bin/persia size: --parameters 1e+15: write a number from 1e7 to 1e14"},
		"no dimension":                     {[]string{"size", "--parameters", "1e9"}, 2, "", "bin/persia size: --dim 0: write a number from 1 to 1024"},
		"another optimizer":                {[]string{"size", "--parameters", "1e9", "--dim", "16", "--optimizer", "lamb"}, 2, "", "--optimizer lamb: write one of adagrad, adam, sgd"},
		"no kubeconfig":                    {[]string{"status", "--context", ""}, 1, "", "there is no kubeconfig: run `gcloud container clusters get-credentials CLUSTER`"},
		"another command":                  {[]string{"refresh"}, 2, "", `bin/persia: unknown command "refresh" for "bin/persia"`},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, test.code, run(t.Context(), test.args, &stdout, &stderr), &stderr)
			assert.Contains(t, stdout.String(), test.stdout)
			assert.Contains(t, stderr.String(), test.stderr)
			if strings.HasPrefix(stdout.String(), "{") {
				assertSchema(t, test.args[0], stdout.String())
			}
		})
	}
	for _, command := range []string{"preflight", "status", "preview", "comment", "recover", "prices", "size"} {
		var stdout bytes.Buffer
		assert.Zero(t, run(t.Context(), []string{command, "--help"}, &stdout, &stdout))
		assert.Contains(t, stdout.String(), "Examples:\n  bin/persia "+command)
	}
}

func TestNoStackSelected(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "pulumi"), []byte("#!/bin/sh\necho error: no stack selected >&2; exit 255\n"), 0o700))
	t.Setenv("PATH", folder+":/bin")
	var stderr bytes.Buffer
	assert.Equal(t, 2, run(t.Context(), []string{"comment"}, &stderr, &stderr))
	assert.Contains(t, stderr.String(), "no stack is selected: write --stack, or run `pulumi stack select`: error: no stack selected")
}

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExitCodes(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	const repository = "../.."
	cases := map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":             {[]string{"--help"}, 0, "", "Exit codes:"},
		"missing":          {[]string{"--dir", repository, "--stack", "prod", "--offline"}, 1, "missing    pulumi CLI ", ""},
		"an unknown stack": {[]string{"--dir", repository, "--stack", "nowhere"}, 2, "", "preflight: there is no stack \"nowhere\""},
		"an unknown flag":  {[]string{"--ofline"}, 2, "", "not defined: -ofline"},
		"an argument":      {[]string{"prod"}, 2, "", `unexpected argument "prod"; name the stack with --stack`},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, test.code, run(t.Context(), test.args, &stdout, &stderr), &stderr)
			assert.Contains(t, stdout.String(), test.stdout)
			assert.Contains(t, stderr.String(), test.stderr)
		})
	}
}

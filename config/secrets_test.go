package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config/input"
)

// source returns decrypted values like Pulumi, and reports which keys contain secrets.
type source struct {
	values  input.Values
	secrets map[string]bool
}

func (s source) GetConfig(key string) (string, bool) { return s.values.Get(key) }

func (s source) IsConfigSecret(key string) bool { return s.secrets[key] }

func TestCheckSecrets(t *testing.T) {
	const plain = "is in plain text, so treat it as compromised"
	const exposed = "is a Pulumi secret, which would be stored in plain text"
	for name, test := range map[string]struct {
		file string
		// elsewhere is true if Pulumi read another file.
		elsewhere bool
		want      []string
	}{
		"no secrets":              {file: "persia:nats: {size: 3}\npersia:jobs: []\n"},
		"one of two in plain":     {file: "persia:pedl: {registry: {password: {secure: h}}, postgresql: {external: {password: hidden}}}", want: []string{"persia:pedl.postgresql.external.password: " + plain}},
		"name of a user":          {file: "persia:pedl: {registry: {user: {secure: hidden}, password: {secure: h}}}", want: []string{"persia:pedl.registry.user: " + exposed}},
		"registry of PEDL":        {file: "persia:pedl: {registry: {password: hidden}}", want: []string{"persia:pedl.registry.password: " + plain}},
		"database of PEDL":        {file: "persia:pedl: {postgresql: {postgresqlPassword: hidden}}", want: []string{"persia:pedl.postgresql.postgresqlPassword: " + plain}},
		"PEDL, encrypted":         {file: "persia:pedl: {registry: {password: {secure: h}}, postgresql: {external: {password: {secure: hidden}}}}"},
		"environment of PEDL":     {file: "persia:pedl: {registry: {password: {secure: h}}, agent: {env: [{name: A, value: {secure: hidden}}]}}", want: []string{"persia:pedl.agent.env[0].value: " + exposed, "valueFrom.secretKeyRef"}},
		"environment of a job":    {file: "persia:jobs: [{name: a, env: [{name: A, value: {secure: hidden}}]}]", want: []string{"persia:jobs[0].env[0].value: " + exposed, "valueFrom.secretKeyRef"}},
		"environment of a role":   {file: "persia:jobs: [{name: a, nnWorker: {env: [{name: A, value: {secure: hidden}}]}}]", want: []string{"persia:jobs[0].nnWorker.env[0].value: " + exposed}},
		"any text":                {file: "persia:cluster: {name: {secure: hidden}}", want: []string{"persia:cluster.name: " + exposed, "without --secret"}},
		"unknown field":           {file: "persia:cluster: {nema: {secure: hidden}}", want: []string{"persia:cluster.nema: " + exposed}},
		"label":                   {file: "persia:nodePools: [{labels: {a: {secure: hidden}}}]", want: []string{"persia:nodePools[0].labels.a: " + exposed}},
		"text of a key":           {file: "persia:project: {secure: hidden}", want: []string{"persia:project: " + exposed}},
		"whole key of PEDL":       {file: `persia:pedl: {secure: '{"registry": {"password": "hidden"}}'}`},
		"whole key of jobs":       {file: `persia:jobs: {secure: '[{"name": "hidden"}]'}`, want: []string{"persia:jobs: " + exposed}},
		"without a namespace":     {file: "pedl: {registry: {password: hidden}}", want: []string{"persia:pedl.registry.password: " + plain}},
		"elsewhere, encrypted":    {file: "persia:pedl: {registry: {password: {secure: hidden}}}", elsewhere: true},
		"elsewhere, plain text":   {file: "persia:pedl: {registry: {password: hidden}}", elsewhere: true, want: []string{"persia:pedl.registry.password: " + plain}},
		"elsewhere, in a job":     {file: "persia:jobs: [{name: a, env: [{name: A, value: {secure: hidden}}]}]", elsewhere: true, want: []string{"persia:jobs: contains a secret"}},
		"empty text for a secret": {file: "persia:pedl: {registry: {password: ''}}"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "config:\n  " + strings.ReplaceAll(test.file, "\n", "\n  ")
			file, err := input.ParseStackFile([]byte(text), Namespace)
			require.NoError(t, err)
			s := source{file.Config.Decrypted(), file.Config.Secrets()}
			if test.elsewhere {
				file = input.StackFile{}
			}
			err = CheckSecrets(s, file)
			if test.want == nil {
				assert.NoError(t, err)
				return
			}
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
			assert.ErrorContains(t, err, "1 problem")
			assert.NotContains(t, err.Error(), "hidden")
		})
	}
}

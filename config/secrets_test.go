package config

import (
	"testing"
	"testing/fstest"

	"encoding/json"
	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/yaml"
)

// source is a stack file that Pulumi has read: what is encrypted is handed out in plain
// text, and its key is known to hold a secret.
type source struct {
	values  map[string]any
	secrets map[string]bool
}

func (source) Project() string { return "persia" }
func (source) Stack() string   { return "dev" }

func (s source) GetConfig(key string) (string, bool) {
	value, ok := s.values[key]
	if text, isText := value.(string); isText {
		return text, true
	}
	text, _ := json.Marshal(value)
	return string(text), ok
}

func (s source) IsConfigSecret(key string) bool { return s.secrets[key] }

// opened is a value as Pulumi hands it out, and whether there is a secret in it.
func opened(value any) (any, bool) {
	secret := false
	switch inner := value.(type) {
	case map[string]any:
		if text, ok := inner["secure"]; ok {
			return text, true
		}
		all := map[string]any{}
		for name, element := range inner {
			opened, sealed := opened(element)
			all[name], secret = opened, secret || sealed
		}
		return all, secret
	case []any:
		all := make([]any, len(inner))
		for i, element := range inner {
			opened, sealed := opened(element)
			all[i], secret = opened, secret || sealed
		}
		return all, secret
	}
	return value, false
}

func TestCheckSecrets(t *testing.T) {
	const plain = "is in plain text; choose another"
	const exposed = "is a secret of Pulumi's, and would be in plain text"
	for name, test := range map[string]struct {
		file string
		// elsewhere says that Pulumi has not read the file, but its like elsewhere.
		elsewhere bool
		want      []string
	}{
		"no secrets":              {file: "persia:nats: {size: 3}\npersia:jobs: []\n"},
		"user, encrypted":         {file: "persia:nats: {users: [{name: a, password: {secure: hidden}}]}"},
		"user, in plain text":     {file: "persia:nats: {users: [{name: a, password: hidden}]}", want: []string{"persia:nats.users[0].password: " + plain}},
		"one of two in plain":     {file: "persia:nats: {users: [{name: a, password: {secure: h}}, {name: b, password: hidden}]}", want: []string{"persia:nats.users[1].password: " + plain}},
		"name of a user":          {file: "persia:nats: {users: [{name: {secure: hidden}, password: {secure: h}}]}", want: []string{"persia:nats.users[0].name: " + exposed}},
		"key, in plain text":      {file: "persia:nats: {tls: {clients: {ca: a, certificate: b, key: hidden}}}", want: []string{"persia:nats.tls.clients.key: " + plain}},
		"whole certificate":       {file: "persia:nats: {tls: {routes: {ca: {secure: a}, certificate: {secure: b}, key: {secure: hidden}}}}"},
		"registry of PEDL":        {file: "persia:pedl: {registry: {password: hidden}}", want: []string{"persia:pedl.registry.password: " + plain}},
		"database of PEDL":        {file: "persia:pedl: {postgresql: {postgresqlPassword: hidden}}", want: []string{"persia:pedl.postgresql.postgresqlPassword: " + plain}},
		"external database":       {file: "persia:pedl: {postgresql: {external: {password: hidden}}}", want: []string{"persia:pedl.postgresql.external.password: " + plain}},
		"PEDL, encrypted":         {file: "persia:pedl: {registry: {password: {secure: h}}, postgresql: {external: {password: {secure: hidden}}}}"},
		"environment of PEDL":     {file: "persia:pedl: {registry: {password: {secure: h}}, agent: {env: [{name: A, value: {secure: hidden}}]}}", want: []string{"persia:pedl.agent.env[0].value: " + exposed, "valueFrom.secretKeyRef"}},
		"environment of a job":    {file: "persia:jobs: [{name: a, env: [{name: A, value: {secure: hidden}}]}]", want: []string{"persia:jobs[0].env[0].value: " + exposed, "valueFrom.secretKeyRef"}},
		"environment of a role":   {file: "persia:jobs: [{name: a, nnWorker: {env: [{name: A, value: {secure: hidden}}]}}]", want: []string{"persia:jobs[0].nnWorker.env[0].value: " + exposed}},
		"any text":                {file: "persia:cluster: {name: {secure: hidden}}", want: []string{"persia:cluster.name: " + exposed, "without --secret"}},
		"unknown field":           {file: "persia:cluster: {nema: {secure: hidden}}", want: []string{"persia:cluster.nema: " + exposed}},
		"label":                   {file: "persia:nodePools: [{labels: {a: {secure: hidden}}}]", want: []string{"persia:nodePools[0].labels[a]: " + exposed}},
		"text of a key":           {file: "persia:project: {secure: hidden}", want: []string{"persia:project: " + exposed}},
		"whole key of NATS":       {file: `persia:nats: {secure: '{"users": [{"name": "a", "password": "hidden"}]}'}`},
		"whole key of jobs":       {file: `persia:jobs: {secure: '[{"name": "hidden"}]'}`, want: []string{"persia:jobs: " + exposed}},
		"without a namespace":     {file: "nats: {users: [{name: a, password: hidden}]}", want: []string{"persia:nats.users[0].password: " + plain}},
		"elsewhere, encrypted":    {file: "persia:nats: {users: [{name: a, password: {secure: hidden}}]}", elsewhere: true},
		"elsewhere, plain text":   {file: "persia:nats: {users: [{name: a, password: hidden}]}", elsewhere: true, want: []string{"persia:nats.users[0].password: " + plain}},
		"elsewhere, in a job":     {file: "persia:jobs: [{name: a, env: [{name: A, value: {secure: hidden}}]}]", elsewhere: true, want: []string{"persia:jobs: has a secret in it"}},
		"empty text for a secret": {file: "persia:nats: {users: [{name: a, password: ''}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			var file map[string]any
			assert.NoError(t, yaml.Unmarshal([]byte(test.file), &file))
			s, files := source{map[string]any{}, map[string]bool{}}, fstest.MapFS{}
			for key, value := range file {
				if key == "nats" {
					key = natsKey
				}
				s.values[key], s.secrets[key] = opened(value)
			}
			if !test.elsewhere {
				text, err := yaml.Marshal(map[string]any{"config": file})
				assert.NoError(t, err)
				files["Pulumi.dev.yaml"] = &fstest.MapFile{Data: text}
			}
			err := CheckSecrets(s, files)
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

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSecretsAreRefused: Pulumi tells the program what is a secret, and it registers
// nothing unless all passwords are, and nothing else is. No message contains a secret.
func TestSecretsAreRefused(t *testing.T) {
	t.Parallel()
	withUser := func(password any) madeUp {
		return madeUp{nats: object{"size": 1, "users": []object{{"name": "ada", "password": password}}}}
	}
	for name, test := range map[string]struct {
		stack madeUp
		want  string
	}{
		"an encrypted password":    {withUser(secure(password)), ""},
		"a password in plain text": {withUser(password), "persia:nats.users[0].password: is in plain text"},
		"an encrypted environment": {madeUp{jobs: []object{job("train", object{"env": []object{{"name": "TOKEN", "value": secure(password)}}})}},
			"persia:jobs[0].env[0].value: is a Pulumi secret"},
	} {
		t.Run(name, func(t *testing.T) {
			project := t.TempDir()
			stackText(t, project, test.stack)
			var output strings.Builder
			_, err := openSandboxTo(t, &output, project, t.TempDir(), "madeup").Preview(t.Context())
			assert.NotContains(t, output.String(), password)
			if test.want == "" {
				require.NoError(t, err, output.String())
				return
			}
			require.Error(t, err)
			assert.Contains(t, output.String(), test.want)
			assert.NotContains(t, output.String(), "kubernetes:")
		})
	}
}

package preflight

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSecrets(t *testing.T) {
	withUser := strings.Replace(created, "persia:nats: {size: 1,", "persia:nats: {size: 1, users: [{name: ada, password: {secure: v1:abc}}],", 1)
	const salt = "encryptionsalt: v1:salt\n"
	t.Run("no passphrase", func(t *testing.T) {
		m := newMachine(t)
		m.stack(salt + withUser)
		assert.Contains(t, problems(m.run(m.options())), "warning secrets: 1 encrypted value in Pulumi.dev.yaml, decrypted with a passphrase: Pulumi asks for it")
		t.Setenv("PULUMI_CONFIG_PASSPHRASE_FILE", filepath.Join(m.home, "passphrase"))
		assert.Contains(t, problems(m.run(m.options())), "missing secrets: 1 encrypted value in Pulumi.dev.yaml, decrypted with a passphrase: PULUMI_CONFIG_PASSPHRASE_FILE is ")
		m.write("home/passphrase", "x")
		assert.Empty(t, problems(m.run(m.options())))
	})
	t.Run("a key of Cloud KMS", func(t *testing.T) {
		m := newMachine(t)
		m.stack("secretsprovider: gcpkms://projects/p\nencryptedkey: abc\n" + withUser)
		assert.Empty(t, problems(m.run(m.options())))
	})
	t.Run("the key of a certificate", func(t *testing.T) {
		m := newMachine(t)
		m.stack(strings.Replace(created, "persia:nats: {size: 1,", "persia:nats: {size: 1, tls: {clients: {ca: a, certificate: b, key: {secure: v1:abc}}},", 1))
		assert.Equal(t, "unchecked stack file: persia:nats.tls: a key is encrypted, so only `pulumi preview` can check the certificates; \n",
			problems(m.run(m.options())))
	})
}

package sandbox

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"persia/config/input"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// takeSecrets removes the encrypted texts from the values of a stack file, and returns placeholders by
// their paths, which the sandbox encrypts instead.
func takeSecrets(values input.Values) (input.Values, auto.ConfigMap) {
	secrets := auto.ConfigMap{}
	left := values.Open(func(path []any, ciphertext string) string {
		namespace, name, _ := strings.Cut(path[0].(string), ":")
		at := append(resource.PropertyPath{name}, path[1:]...)
		secrets[namespace+":"+at.String()] = auto.ConfigValue{Value: standIn(ciphertext), Secret: true}
		return ""
	})
	return left, secrets
}

// ciphertext is how texts begin that Pulumi has encrypted: by a key or a passphrase, or by Pulumi Cloud.
var ciphertext = regexp.MustCompile(`^(v1:|AAAB)`)

// standIn takes the place of a secret, which only its owner's key opens. It is the same as long as the secret is. In an
// example, where nothing is encrypted, the text itself is the secret.
func standIn(text string) string {
	if !ciphertext.MatchString(text) {
		return text
	}
	return fmt.Sprintf("sandbox-%x", sha256.Sum256([]byte(text)))[:20]
}

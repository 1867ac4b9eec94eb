package sandbox

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// takeSecrets takes the encrypted texts out of the configuration of a stack file, and
// returns, by their paths, what the sandbox encrypts in their place.
func takeSecrets(config map[string]any) auto.ConfigMap {
	secrets := auto.ConfigMap{}
	for key, value := range config {
		namespace, name, ok := strings.Cut(key, ":")
		if !ok {
			namespace, name = "", key
		}
		config[key] = take(value, resource.PropertyPath{name}, func(path resource.PropertyPath, text string) {
			at := path.String()
			if namespace != "" {
				at = namespace + ":" + at
			}
			secrets[at] = auto.ConfigValue{Value: standIn(text), Secret: true}
		})
	}
	return secrets
}

// take returns the value with an empty text in the place of each that is encrypted.
func take(value any, path resource.PropertyPath, found func(resource.PropertyPath, string)) any {
	at := func(element any) resource.PropertyPath { return append(path[:len(path):len(path)], element) }
	switch value := value.(type) {
	case map[string]any:
		if text, ok := value["secure"].(string); ok && len(value) == 1 {
			found(path, text)
			return ""
		}
		for name, element := range value {
			value[name] = take(element, at(name), found)
		}
	case []any:
		for i, element := range value {
			value[i] = take(element, at(i), found)
		}
	}
	return value
}

// ciphertext is how texts begin that Pulumi has encrypted: by a key or a passphrase, or
// by Pulumi Cloud.
var ciphertext = regexp.MustCompile(`^(v1:|AAAB)`)

// standIn takes the place of a secret, which only its owner's key opens. It is the same
// as long as the secret is. In an example, where nothing is encrypted, the text itself
// is the secret.
func standIn(text string) string {
	if !ciphertext.MatchString(text) {
		return text
	}
	return fmt.Sprintf("sandbox-%x", sha256.Sum256([]byte(text)))[:20]
}

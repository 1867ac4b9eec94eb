package config

import (
	"io/fs"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/decode"
	"persia/config/stackfile"
)

// Source is the configuration of a stack. A pulumi.Context implements it.
type Source interface {
	Project() string
	Stack() string
	// GetConfig returns the decrypted value of a key: a string as it is, and anything else
	// as JSON.
	GetConfig(key string) (string, bool)
	// IsConfigSecret reports whether anything in the value of a key is a secret.
	IsConfigSecret(key string) bool
}

// CheckSecrets refuses passwords and keys that are not Pulumi secrets, and Pulumi secrets
// where the cluster or the state would hold them in plain text. Pulumi reports only whether
// a key contains a secret, so CheckSecrets reads from the stack file, in files, where. For
// values from elsewhere, like an environment of Pulumi ESC, it relies on the whole key.
func CheckSecrets(source Source, files fs.FS) error {
	p := &check.Problems{}
	written := stackfile.Of(files, source.Project(), source.Stack())
	for _, k := range keys {
		text, ok := given(source.GetConfig, k.name)
		if !ok {
			continue
		}
		path, into := field.NewPath(k.name), reflect.TypeOf(k.into(&Stack{})).Elem()
		found := decode.FindSecrets(path, decode.JSON(text), written[k.name], into)
		found.Report(p, path, source.IsConfigSecret(k.name))
	}
	return p.Err()
}

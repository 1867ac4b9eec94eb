package config

import (
	"io/fs"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/decode"
	"persia/config/stackfile"
)

// Source is a stack's configuration as Pulumi hands it out. A pulumi.Context is one.
type Source interface {
	Project() string
	Stack() string
	// GetConfig returns a text as it is, and anything else as JSON, decrypted.
	GetConfig(key string) (string, bool)
	// IsConfigSecret reports whether anything in the value of a key is a secret.
	IsConfigSecret(key string) bool
}

// CheckSecrets refuses passwords and keys that are not secrets of Pulumi's, and secrets
// that would not stay secret in what is made of them. Pulumi tells only of a whole key
// whether there is a secret in it. Where in the key is read from the stack file, among
// the files of the project's directory; what comes from elsewhere, as from an
// environment of Pulumi ESC, is judged by the whole key.
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

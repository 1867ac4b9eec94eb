package config

import (
	"io/fs"
	"reflect"
	"regexp"

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
	written := stackfile.Values(files, source.Project(), source.Stack())
	for _, k := range keys {
		text, ok := given(source.GetConfig, k.name)
		if !ok {
			continue
		}
		path, into := field.NewPath(k.name), reflect.TypeOf(k.into(&Stack{})).Elem()
		found := decode.FindSecrets(path, decode.JSON(text), written[k.name], into)
		reportSecrets(p, path, found, source.IsConfigSecret(k.name))
	}
	return p.Err()
}

// envValue is the path of an environment variable's value.
var envValue = regexp.MustCompile(`\.env\[\d+\]\.value$`)

func reportSecrets(p *check.Problems, key *field.Path, found decode.Found, isSecret bool) {
	plain := found.Plain
	if !isSecret {
		plain = append(plain, found.Sealed...)
	}
	for _, path := range plain {
		p.Forbidden(path, "is in plain text; choose another, as this one is known by now, and give it with pulumi config set --secret --path '%s'", path)
	}
	const exposed = "is a secret of Pulumi's, and would be in plain text in the cluster and in Pulumi's state; "
	for _, path := range found.Exposed {
		if envValue.MatchString(path.String()) {
			p.Forbidden(path, exposed+"put it into a Kubernetes Secret, and name that in valueFrom.secretKeyRef")
			continue
		}
		p.Forbidden(path, exposed+"write it without --secret, or leave it out")
	}
	if isSecret && len(found.Sealed)+len(found.Plain)+len(found.Exposed) == 0 {
		p.Forbidden(key, "has a secret in it, which would be in plain text in the cluster and in Pulumi's state; write what is no password or key without --secret, and name a Kubernetes Secret in valueFrom.secretKeyRef of an environment variable")
	}
}

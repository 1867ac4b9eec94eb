package pod

import (
	"path"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Image checks an image reference as the kubelet reads it, with an example of one for
// the message.
func Image(p *check.Problems, at *field.Path, image, example string) {
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		p.Invalid(at, image, "must be an image reference, like %s: %s", example, err)
	}
}

// IsLoose reports whether an image reference may name another image tomorrow: one
// without a tag, or with the tag latest.
func IsLoose(image string) bool {
	_, tag, tagged := strings.Cut(path.Base(image), ":")
	return !strings.Contains(image, "@") && (!tagged || tag == "latest")
}

// PullSecrets checks the Secrets with the credentials of registries.
func PullSecrets(p *check.Problems, path *field.Path, secrets []corev1.LocalObjectReference) {
	for i, secret := range secrets {
		p.Name(path.Index(i).Child("name"), secret.Name, validation.IsDNS1123Subdomain)
	}
	check.Unique(secrets, func(i, first int) {
		p.Duplicate(path.Index(i).Child("name"), secrets[i].Name, "is the same as [%d]; write each Secret once", first)
	})
}

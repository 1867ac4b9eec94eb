package pod

import (
	"path"
	"regexp"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Image checks an image reference as the kubelet parses it. The message shows the example.
func Image(p *check.Problems, at *field.Path, image, example string) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		p.Invalid(at, image, "must be an image reference, like %s: %s", example, err)
		return
	}
	switch host := reference.Domain(named); {
	case host == "docker.pkg.dev", strings.HasSuffix(host, "-docker.pkg.dev") && strings.Count(reference.Path(named), "/") < 2:
		p.Invalid(at, image, "cannot be in Artifact Registry, whose images are LOCATION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE; write all four parts")
	case ownNode.MatchString(host):
		p.Warn(at, "%s is in a registry on each node itself, where nothing of the stack runs one; push the image to Artifact Registry, and write its name there", image)
	}
}

// ownNode matches the hosts by which a machine reaches itself.
var ownNode = regexp.MustCompile(`^(localhost|127\.[0-9.]+)(:[0-9]+)?$`)

// NeverPulled warns of the pull policy Never.
const NeverPulled = "Never starts only images that are on the disk of a node already, and new nodes have none; write IfNotPresent"

// IsLoose reports whether an image reference may name another image tomorrow, because it has
// no digest and no tag other than latest.
func IsLoose(image string) bool {
	_, tag, tagged := strings.Cut(path.Base(image), ":")
	return !strings.Contains(image, "@") && (!tagged || tag == "latest")
}

// PullSecrets checks the names of Secrets with registry credentials.
func PullSecrets(p *check.Problems, path *field.Path, secrets []corev1.LocalObjectReference) {
	for i, secret := range secrets {
		p.Name(path.Index(i).Child("name"), secret.Name, validation.IsDNS1123Subdomain)
	}
	check.UniqueField(p, path, "name", secrets, func(s corev1.LocalObjectReference) string { return s.Name }, "is the same as [%d]; write each Secret once")
}

package pod

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// The fields of a pod that its containers can read (Kubernetes, "Downward API").
var (
	// VolumeFields are available in files.
	VolumeFields = []string{"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
	// envFields are available in environment variables.
	envFields = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
)

// entryForm matches the path of one label or annotation, and its key.
var entryForm = regexp.MustCompile(`^metadata\.(?:labels|annotations)\['(.*)'\]$`)

// isEntry reports whether a path is a label or an annotation with a key that Kubernetes accepts.
func isEntry(fieldPath string) bool {
	match := entryForm.FindStringSubmatch(fieldPath)
	return match != nil && len(validation.IsQualifiedName(match[1])) == 0
}

// FieldRef checks a reference to an allowed field of the pod, a label, or an annotation.
func FieldRef(p *check.Problems, path *field.Path, ref corev1.ObjectFieldSelector, allowed []string) {
	if !slices.Contains(allowed, ref.FieldPath) && !isEntry(ref.FieldPath) {
		p.Invalid(path.Child("fieldPath"), ref.FieldPath, "must be %s, or a label like metadata.labels['team']", check.Or(allowed))
	}
	if ref.APIVersion != "" {
		check.OneOf(p, path.Child("apiVersion"), ref.APIVersion, "v1")
	}
}

// shownResources are the amounts that containers can read.
var shownResources = []string{"limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage"}

// divisors are the units of amounts, of CPU if true and of other resources if false.
var divisors = map[bool][]string{
	true:  {"0", "1", "1m"},
	false: {"0", "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"},
}

// ResourceFieldRef checks a reference to an amount of a container.
func ResourceFieldRef(p *check.Problems, path *field.Path, ref corev1.ResourceFieldSelector) {
	if !check.OneOf(p, path.Child("resource"), ref.Resource, shownResources...) {
		return
	}
	units := divisors[ref.Resource == "limits.cpu" || ref.Resource == "requests.cpu"]
	if divisor := ref.Divisor.String(); !slices.Contains(units, divisor) {
		p.Invalid(path.Child("divisor"), divisor, "must be %s", check.Or(units[1:]))
	}
}

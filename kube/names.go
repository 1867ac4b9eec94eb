package kube

import (
	"crypto/sha256"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// LabelName joins parts with hyphens. The result fits a label, which limits the names of
// services and of objects that create pods, and labels of Google Cloud. LabelName cuts a
// longer name and ends it in a hash of the whole, so that different names stay different.
func LabelName(parts ...string) string {
	const limit = validation.DNS1123LabelMaxLength
	name := strings.Join(parts, "-")
	if len(name) <= limit {
		return name
	}
	suffix := "-" + Hash(name)
	return strings.TrimRight(name[:limit-len(suffix)], "-") + suffix
}

// Hash returns eight hexadecimal digits of the SHA-256 of a text.
func Hash(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:8] }

// Sanitize returns text in lower case, with a hyphen in place of everything that is
// neither a letter or digit of ASCII nor in alsoAllowed.
func Sanitize(text, alsoAllowed string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune(alsoAllowed, r) {
			return r
		}
		return '-'
	}, strings.ToLower(text))
}

// Labels returns the labels that Kubernetes recommends for every object of an
// application. name is the application, and instance identifies one installation of it.
func Labels(name, instance string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       name,
		"app.kubernetes.io/instance":   instance,
		"app.kubernetes.io/part-of":    "persia",
		"app.kubernetes.io/managed-by": "pulumi",
	}
}

// Meta returns the metadata of a namespaced object.
func Meta(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

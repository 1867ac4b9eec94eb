package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// StackName returns the full name of a stack: its organization, project, and name.
func StackName(ctx *pulumi.Context) string {
	return strings.Join([]string{ctx.Organization(), ctx.Project(), ctx.Stack()}, "/")
}

// LabelName joins parts with hyphens to the name of an object that must fit a
// label: a service's, or that of whatever makes pods. A longer one is cut and ends
// in a hash of the whole, so that two long names that differ stay different.
func LabelName(parts ...string) string {
	const limit = validation.DNS1123LabelMaxLength
	name := strings.Join(parts, "-")
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:])[:8]
	return strings.TrimRight(name[:limit-len(suffix)], "-") + suffix
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

// BaselinePodSecurity returns the labels of a namespace that enforces Kubernetes'
// baseline Pod Security Standard.
func BaselinePodSecurity() map[string]string {
	return map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
}

// RestrictedPodSecurity returns the labels of a namespace that enforces Kubernetes'
// restricted Pod Security Standard.
func RestrictedPodSecurity() map[string]string {
	return map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
}

// NoPodSecurity returns the labels of a namespace that admits any pod.
func NoPodSecurity() map[string]string {
	return map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}
}

// Package admission keeps out of a stack's namespaces what no part of the stack needs: pods that
// take over their node, images that the stack file does not name, and the deletion of checkpoint
// claims by hand. The API server itself enforces the policies; there is no webhook to fail.
package admission

import (
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"persia/kube"
)

// Args are the namespaces and the images that may run in them.
type Args struct {
	// Stack is the whole name of the stack.
	Stack string
	// Namespaces are the stack's namespaces. No pod there shares its node's namespaces or is privileged.
	Namespaces []string
	// ImageNamespaces are the Namespaces whose pods run only known images: by digest, or from the
	// repositories of Images.
	ImageNamespaces []string
	// Images are all that the stack runs in ImageNamespaces.
	Images []string
	// ClaimNamespaces are the Namespaces in which users cannot delete bound claims.
	ClaimNamespaces []string
}

// Marker is the policy that names the stack that a cluster holds, in StackAnnotation.
const (
	Marker          = "persia-pods"
	StackAnnotation = "persia.com/stack"
)

// NewPolicies registers the policies, each with what puts it into force. It returns what must exist before pods.
func NewPolicies(r *kube.Registrar, name string, args Args) []pulumi.CustomResource {
	var bindings []pulumi.CustomResource
	objects := r.Component("persia:admission:Policies", name)
	for _, policy := range []*admissionv1.ValidatingAdmissionPolicy{
		podsPolicy(name+"-pods", args.Namespaces),
		imagesPolicy(name+"-images", args.ImageNamespaces, repositories(args.Images)),
		claimsPolicy(name+"-claims", args.ClaimNamespaces),
	} {
		policy.Annotations = map[string]string{StackAnnotation: args.Stack}
		registered := objects.Add(policy.Name, policy, nil)
		bindings = append(bindings, objects.Add(policy.Name, binding(policy), kube.Needs(registered)))
	}
	return bindings
}

// repositories returns the images without tag and digest, in the spelling of the pods: a policy
// compares text, so docker.io/library/nats and nats differ.
func repositories(images []string) []string {
	var names []string
	for _, image := range images {
		names = append(names, repository(image))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if tag := strings.LastIndex(image, ":"); tag > strings.LastIndex(image, "/") {
		return image[:tag]
	}
	return image
}

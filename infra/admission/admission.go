// Package admission keeps out of a stack's namespaces what no part of the stack needs: pods that
// take over their node, images that the stack file does not name, and the deletion of checkpoint
// claims by hand. The API server itself enforces the policies; there is no webhook to fail.
package admission

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"persia/config/input"
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

//go:embed policies.yaml
var policies string

// NewPolicies registers the policies, each with what puts it into force. It returns what must exist before pods.
func NewPolicies(r *kube.Registrar, name string, args Args) []pulumi.CustomResource {
	var bindings []pulumi.CustomResource
	objects := r.Component("persia:admission:Policies", name)
	args.Images = slices.Compact(slices.Sorted(slices.Values(input.Words(args.Images, repository))))
	for _, list := range []*[]string{&args.Namespaces, &args.ImageNamespaces, &args.ClaimNamespaces} {
		*list = slices.Sorted(slices.Values(*list))
	}
	for pair := range slices.Chunk(kube.Manifest(policies, args), 2) {
		name := pair[0].(*admissionv1.ValidatingAdmissionPolicy).Name
		bindings = append(bindings, objects.Add(name, pair[1], kube.Needs(objects.Add(name, pair[0], nil))))
	}
	return bindings
}

// repository returns an image without tag and digest, in the spelling of the pods: a policy compares text, so
// docker.io/library/nats and nats differ.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if tag := strings.LastIndex(image, ":"); tag > strings.LastIndex(image, "/") {
		return image[:tag]
	}
	return image
}

package pedl

import (
	_ "embed"
	"encoding/base64"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/kube"
)

const (
	// NamespaceName is the namespace of the master and of its database.
	NamespaceName = "pedl"
	// AgentNamespaceName is the namespace of the agents. Who runs a pod there may do anything on its node.
	AgentNamespaceName = "pedl-agents"
)

// Args describes an installation of PEDL.
type Args struct {
	PEDL   config.PEDL
	Images config.Images
	// Placement is where the master and its database run.
	Placement kube.Placement
	// Tolerations are for the taints of the pools that host agents.
	Tolerations []corev1.Toleration
	// Adopter registers the namespace of the master and a claim of a class in it, and keeps both on
	// destroy, so they may already exist. It is nil if the stack has no claim that it must not delete.
	Adopter pulumi.ProviderResource
}

//go:embed namespace.yaml
var namespaceManifest string

// NewNamespaces registers both namespaces. It returns all that is in the namespaces before any pod.
func NewNamespaces(r *kube.Registrar, name string, args Args) []pulumi.CustomResource {
	var before []pulumi.CustomResource
	objects := r.Component("persia:pedl:Namespaces", name)
	for _, namespace := range []struct {
		Name, Security string
		opts           []pulumi.ResourceOption
		Credentials    []byte
	}{
		{NamespaceName, "baseline", kept(args.Adopter), credentials(args.PEDL.Registry)},
		// Agents mount the socket of Docker, a path of their node.
		{AgentNamespaceName, "privileged", nil, credentials(args.PEDL.Registry)},
	} {
		of := kube.ByKind(namespaceManifest, namespace)
		inNamespace := kube.Needs(objects.Add(namespace.Name, of["Namespace"], nil, namespace.opts...))
		before = append(before,
			objects.Add(namespace.Name+"-closed", of["NetworkPolicy"], inNamespace),
			objects.Add(namespace.Name, of["ServiceAccount"], inNamespace),
			objects.Add(namespace.Name+"-registry", of["Secret"], inNamespace))
	}
	return before
}

// kept returns the options of a resource that outlives the stack and that the next stack takes
// over, if adopter is not nil.
func kept(adopter pulumi.ProviderResource) []pulumi.ResourceOption {
	if adopter == nil {
		return nil
	}
	return []pulumi.ResourceOption{pulumi.RetainOnDelete(true), pulumi.Provider(adopter)}
}

// credentials returns the registry's credentials as the kubelet reads them.
func credentials(registry config.PEDLRegistry) []byte {
	password := string(registry.Password)
	return kube.JSON(map[string]any{"auths": map[string]any{registry.Server: map[string]string{
		"username": registry.User,
		"password": password,
		"email":    registry.Email,
		"auth":     base64.StdEncoding.EncodeToString([]byte(registry.User + ":" + password)),
	}}})
}

package pedl

import (
	"encoding/base64"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/kube"
)

const (
	// NamespaceName is the namespace of the master and of its database.
	NamespaceName = "pedl"
	// AgentNamespaceName is the namespace of the agents. Who runs a pod there may do anything on its node.
	AgentNamespaceName = "pedl-agents"
	// serviceAccountName is the service account of all pods, in both namespaces. It has no rights.
	serviceAccountName = "pedl"

	pullSecretName = "pedl-registry"
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

// NewNamespaces registers both namespaces, each with what its pods run as and pull their images with. A
// default policy denies all their traffic; other policies allow what is needed. NewNamespaces returns all
// that is in the namespaces before any pod.
func NewNamespaces(r *kube.Registrar, name string, args Args) []pulumi.CustomResource {
	var before []pulumi.CustomResource
	objects := r.Component("persia:pedl:Namespaces", name)
	for _, namespace := range []*corev1.Namespace{
		{ObjectMeta: kube.Meta("", NamespaceName, kube.PodSecurity("baseline"))},
		// Agents mount the socket of Docker, a path of their node.
		{ObjectMeta: kube.Meta("", AgentNamespaceName, kube.PodSecurity("privileged"))},
	} {
		var opts []pulumi.ResourceOption
		if namespace.Name == NamespaceName {
			opts = kept(args.Adopter)
		}
		inNamespace := kube.Needs(objects.Add(namespace.Name, namespace, nil, opts...))
		before = append(before,
			objects.Add(namespace.Name+"-closed", kube.Closed(meta(namespace.Name, "closed", "pedl")), inNamespace),
			objects.Add(namespace.Name, serviceAccount(namespace.Name), inNamespace),
			objects.Add(namespace.Name+"-registry", pullSecret(namespace.Name, args.PEDL.Registry), inNamespace))
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

func serviceAccount(namespace string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta:                   meta(namespace, serviceAccountName, "pedl"),
		AutomountServiceAccountToken: new(false),
	}
}

// pullSecret holds the registry's credentials as the kubelet reads them.
func pullSecret(namespace string, registry config.PEDLRegistry) *corev1.Secret {
	password := string(registry.Password)
	text := kube.JSON(map[string]any{"auths": map[string]any{registry.Server: map[string]string{
		"username": registry.User,
		"password": password,
		"email":    registry.Email,
		"auth":     base64.StdEncoding.EncodeToString([]byte(registry.User + ":" + password)),
	}}})
	return &corev1.Secret{
		ObjectMeta: meta(namespace, pullSecretName, "pedl"),
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: text},
	}
}

// meta names an object of a part of PEDL.
func meta(namespace, name, part string) metav1.ObjectMeta {
	return kube.Meta(namespace, name, kube.Labels(part, name))
}

// service returns a Service of a part in the namespace of the master.
func service(name, part string, spec corev1.ServiceSpec) *corev1.Service {
	spec.Selector = selector(part)
	return &corev1.Service{ObjectMeta: meta(NamespaceName, name, part), Spec: spec}
}

// selector finds the pods of a part.
func selector(part string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": part, "app.kubernetes.io/part-of": "persia"}
}

// template returns the pod template of a part, with the settings that all of PEDL's pods share.
func template(name, part string, pod corev1.PodSpec) corev1.PodTemplateSpec {
	pod.ServiceAccountName = serviceAccountName
	pod.AutomountServiceAccountToken = new(false)
	// A variable for each service is nothing that any of them reads.
	pod.EnableServiceLinks = new(false)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: kube.Labels(part, name)},
		Spec:       pod,
	}
}

package admission

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/kube"
)

// changed leaves alone what was admitted before the policy: a controller that only
// removes a finalizer must not be stopped.
const changed = "request.operation == 'CREATE' || object.spec != oldObject.spec"

// pods keep to themselves on their nodes.
func podsPolicy(name string, namespaces []string) *admissionv1.ValidatingAdmissionPolicy {
	return policy(name, namespaces, podRule(), changed, []admissionv1.Validation{
		{
			Expression: "!(has(object.spec.hostNetwork) && object.spec.hostNetwork) && " +
				"!(has(object.spec.hostPID) && object.spec.hostPID) && !(has(object.spec.hostIPC) && object.spec.hostIPC)",
			Message: "pods here must not share the network, the processes or the shared memory of their node: " +
				"remove hostNetwork, hostPID and hostIPC",
		},
		{
			Expression: eachContainer("!(has(c.securityContext) && has(c.securityContext.privileged) && c.securityContext.privileged)"),
			Message:    "containers here must not be privileged: of all pods of the stack only the NVIDIA driver's are, in kube-system",
		},
	})
}

// digest ends an image that can never be another one.
const digest = "@sha256:[0-9a-f]{64}$"

// gkeImage begins an image of GKE, in either registry that it pulls from. The second is Artifact
// Registry in the cluster's region.
const gkeImage = "^(gke[.]gcr[.]io|[a-z0-9-]+-artifactregistry[.]gcr[.]io/gke-release)/"

// imagesPolicy admits images by digest, GKE's images, because GKE adds a container to pods with
// buckets, and images from some repositories.
func imagesPolicy(name string, namespaces, repositories []string) *admissionv1.ValidatingAdmissionPolicy {
	return policy(name, namespaces, podRule(), changed, []admissionv1.Validation{{
		Expression: eachContainer(fmt.Sprintf(
			"c.image.matches('%s') || c.image.matches('%s') || %s.exists(r, c.image == r || c.image.startsWith(r + ':'))",
			digest, gkeImage, kube.JSON(repositories))),
		Message: "images here must be given by digest, like busybox@sha256:…, " +
			"or be from a repository that the stack file names: " + strings.Join(repositories, ", "),
	}})
}

// claimsPolicy stops who deletes a claim with data by hand. Pulumi's Kubernetes provider deletes with foreground
// propagation unless an object says otherwise (pulumi.com/deletionPropagationPolicy), and kubectl only when it is told
// to. The controllers of Kubernetes empty a namespace that is being deleted.
func claimsPolicy(name string, namespaces []string) *admissionv1.ValidatingAdmissionPolicy {
	rule := resourceRule([]string{"persistentvolumeclaims"}, admissionv1.Delete)
	const ofStack = "has(oldObject.metadata.labels) && 'app.kubernetes.io/managed-by' in oldObject.metadata.labels && " +
		"oldObject.metadata.labels['app.kubernetes.io/managed-by'] == 'pulumi' && " +
		"has(oldObject.status.phase) && oldObject.status.phase == 'Bound'"
	return policy(name, namespaces, rule, ofStack, []admissionv1.Validation{{
		Expression: "(request.options != null && has(request.options.propagationPolicy) && " +
			"request.options.propagationPolicy == 'Foreground') || " +
			"request.userInfo.username.startsWith('system:serviceaccount:kube-system:') || " +
			"request.userInfo.username == 'system:kube-controller-manager'",
		Message: "this claim holds data of the stack: remove the volume from the stack file and run `pulumi up`, " +
			"or `pulumi destroy`. To delete it by hand all the same: kubectl delete --cascade=foreground",
	}})
}

// eachContainer returns an expression that requires an expression about c of every container of a pod.
func eachContainer(expression string) string {
	return fmt.Sprintf("object.spec.containers.all(c, %[1]s) && "+
		"(!has(object.spec.initContainers) || object.spec.initContainers.all(c, %[1]s)) && "+
		"(!has(object.spec.ephemeralContainers) || object.spec.ephemeralContainers.all(c, %[1]s))", expression)
}

func podRule() admissionv1.NamedRuleWithOperations {
	return resourceRule([]string{"pods", "pods/ephemeralcontainers"}, admissionv1.Create, admissionv1.Update)
}

func resourceRule(resources []string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources,
			Scope: new(admissionv1.NamespacedScope)},
	}}
}

// policy returns a policy. If the API server cannot evaluate it, it refuses the requests that match.
func policy(name string, namespaces []string, rule admissionv1.NamedRuleWithOperations, condition string,
	validations []admissionv1.Validation) *admissionv1.ValidatingAdmissionPolicy {
	forbidden := metav1.StatusReasonForbidden
	for i := range validations {
		validations[i].Reason = &forbidden
	}
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: kube.Meta("", name, kube.Labels("admission", name)),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy:       new(admissionv1.Equivalent),
				NamespaceSelector: inNamespaces(namespaces),
				ResourceRules:     []admissionv1.NamedRuleWithOperations{rule},
			},
			MatchConditions: []admissionv1.MatchCondition{{Name: "concerned", Expression: condition}},
			Validations:     validations,
		},
	}
}

func inNamespaces(namespaces []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Sorted(slices.Values(namespaces)),
	}}}
}

// binding puts a policy into force.
func binding(policy *admissionv1.ValidatingAdmissionPolicy) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: kube.Meta("", policy.Name, policy.Labels),
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

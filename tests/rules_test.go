package tests

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
	"persia/kube"
)

// rules hold for the plan of every stack file. docs/reference/security.md promises most of them.
var rules = map[string]func(t *testing.T, r *testkit.Recorder){
	"roles list what they allow":                  leastPrivilege,
	"roles are bound to accounts of the stack":    bindings,
	"namespaces are closed":                       closedNamespaces,
	"objects are in namespaces of the stack":      namespaces,
	"only controllers have tokens":                tokens,
	"containers have the profile of the runtime":  seccomp,
	"grants come between the cluster and its use": grants,
	"objects wait for the webhooks of GKE":        webhooks,
	"objects have no zero values":                 zeroValues,
	"objects are in the cluster of the stack":     providers,
	"objects named by a hash are so in Pulumi":    hashedNames,
}

func TestRulesOfEveryStack(t *testing.T) {
	stacks := map[string]*testkit.Recorder{"prod with PERSIA's operator": programtest.MustDeploy(t, programtest.LeftToOperator(t), nil)}
	for _, path := range programtest.StackFiles(t) {
		stacks[path] = programtest.DeployFile(t, path)
	}
	for path, recorder := range stacks {
		for name, rule := range rules {
			t.Run(path+": "+name, func(t *testing.T) { rule(t, recorder) })
		}
	}
}

// objects decodes all objects of some kinds.
func objects[T any](t *testing.T, r *testkit.Recorder, kinds ...string) map[string]T {
	t.Helper()
	decoded := map[string]T{}
	for _, registration := range r.Resources {
		kind := registration.TypeToken[strings.LastIndex(registration.TypeToken, ":")+1:]
		if strings.HasPrefix(registration.TypeToken, "kubernetes:") && slices.Contains(kinds, kind) {
			decoded[registration.URN] = testkit.Object[T](t, registration)
		}
	}
	return decoded
}

func leastPrivilege(t *testing.T, r *testkit.Recorder) {
	for urn, role := range objects[rbacv1.ClusterRole](t, r, "Role", "ClusterRole") {
		for _, rule := range role.Rules {
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
				assert.NotContains(t, []string{"*", "bind", "impersonate", "escalate"}, word, urn)
			}
			if strings.Contains(urn, ":ClusterRole::") {
				assert.NotContains(t, rule.Resources, "secrets", urn)
			}
		}
	}
}

func bindings(t *testing.T, r *testkit.Recorder) {
	for urn, binding := range objects[rbacv1.ClusterRoleBinding](t, r, "RoleBinding", "ClusterRoleBinding") {
		assert.NotEqual(t, "cluster-admin", binding.RoleRef.Name, urn)
		for _, subject := range binding.Subjects {
			assert.Equal(t, rbacv1.ServiceAccountKind, subject.Kind, urn)
			assert.NotEqual(t, "default", subject.Name, urn)
		}
	}
}

// closedNamespaces: pods have only the connections that a policy allows, and no policy allows all.
func closedNamespaces(t *testing.T, r *testkit.Recorder) {
	closed, open := map[string]bool{}, map[string]bool{}
	for _, policy := range objects[networkingv1.NetworkPolicy](t, r, "NetworkPolicy") {
		spec := policy.Spec
		if len(spec.PodSelector.MatchLabels)+len(spec.PodSelector.MatchExpressions) > 0 {
			continue
		}
		if len(spec.PolicyTypes) == 2 && len(spec.Ingress)+len(spec.Egress) == 0 {
			closed[policy.Namespace] = true
		}
		if slices.ContainsFunc(spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool { return len(r.From) == 0 }) ||
			slices.ContainsFunc(spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return len(r.To) == 0 }) {
			open[policy.Namespace] = true
		}
	}
	for _, namespace := range objects[corev1.Namespace](t, r, "Namespace") {
		assert.True(t, closed[namespace.Name] && !open[namespace.Name], namespace.Name)
		if namespace.Name != "pedl-agents" { // which start containers on their nodes
			assert.Contains(t, []string{"baseline", "restricted"}, namespace.Labels["pod-security.kubernetes.io/enforce"], namespace.Name)
		}
	}
}

func namespaces(t *testing.T, r *testkit.Recorder) {
	for _, registration := range r.Resources {
		if namespace := testkit.Found(t, registration, "metadata.namespace"); namespace != nil {
			assert.Contains(t, []any{"persia", "nats-io", "persia-operator", "jobset-system", "kueue-system", "persia-provisioner", "pedl", "pedl-agents", "kube-system"}, namespace, registration.URN)
		}
	}
}

// templates returns the pods of all workloads.
func templates(t *testing.T, r *testkit.Recorder) map[string]corev1.PodTemplateSpec {
	t.Helper()
	templates := map[string]corev1.PodTemplateSpec{}
	for _, registration := range r.Resources {
		if strings.HasPrefix(registration.TypeToken, "kubernetes:") && testkit.Found(t, registration, "spec.template.spec") != nil {
			templates[registration.URN] = testkit.Part[corev1.PodTemplateSpec](t, registration, "spec.template")
		}
	}
	assert.NotEmpty(t, templates)
	return templates
}

// tokens: only controllers, and the completions of operator jobs, have a token, each with an account of its own.
func tokens(t *testing.T, r *testkit.Recorder) {
	accounts := map[string]string{
		"nats-operator": "nats-operator", "persia-operator": "persia-operator", "jobset": "jobset-controller", "kueue": "kueue",
	}
	for urn, template := range templates(t, r) {
		pod := template.Spec
		name := urn[strings.LastIndex(urn, ":")+1:]
		account := accounts[name]
		if strings.Contains(urn, "persia:operator:Job$") && strings.HasSuffix(name, "-completion") {
			account = name
		}
		if automount := pod.AutomountServiceAccountToken; automount == nil || *automount {
			assert.NotEmpty(t, account, "%s has a token", urn)
			assert.Equal(t, account, pod.ServiceAccountName, urn)
		}
	}
}

func seccomp(t *testing.T, r *testkit.Recorder) {
	for urn, template := range templates(t, r) {
		pod := template.Spec
		if strings.HasSuffix(urn, "::nvidia-driver") || strings.HasSuffix(urn, "::pedl-agent") {
			continue // which are privileged
		}
		if assert.NotNil(t, pod.SecurityContext, urn) && assert.NotNil(t, pod.SecurityContext.SeccompProfile, urn) {
			assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type, urn)
		}
	}
}

// grants: the cluster makes the project's pool of Workload Identity in IAM, and nodes pull images at once.
func grants(t *testing.T, r *testkit.Recorder) {
	for _, grant := range r.Some(testkit.BucketGrant) {
		for _, cluster := range r.Some(testkit.Cluster) {
			assert.Contains(t, r.Before(grant), cluster.URN, grant.URN)
		}
	}
	for _, reader := range r.Some(testkit.RepositoryReader) {
		for _, pool := range r.Some(testkit.NodePool) {
			assert.Contains(t, r.Before(pool), reader.URN, pool.URN)
		}
	}
}

// undisturbed has the API groups of Kubernetes and of the controllers that the stack installs. The API server calls no webhook on nodes for them.
var undisturbed = []string{
	"core", "apps", "batch", "policy", "networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io",
	"apiextensions.k8s.io", "admissionregistration.k8s.io", "nats.io", "persia.com", "jobset.x-k8s.io", "kueue.x-k8s.io",
}

// webhooks: an object of another group waits for a Deployment of the stack, so that there are nodes.
func webhooks(t *testing.T, r *testkit.Recorder) {
	for _, registration := range r.Resources {
		kind, isObject := strings.CutPrefix(registration.TypeToken, "kubernetes:")
		group, _, _ := strings.Cut(kind, "/")
		if !isObject || slices.Contains(undisturbed, group) {
			continue
		}
		assert.Equal(t, string(kube.ManagedPrometheus), group, "find out which webhooks of GKE see it, and add it here")
		before := r.Before(registration)
		assert.True(t, slices.ContainsFunc(r.Some(testkit.Deployment), func(d testkit.Resource) bool {
			return before[d.URN] && testkit.Found(t, d, `metadata.annotations["pulumi.com/skipAwait"]`) == nil
		}), "%s waits for no Deployment", registration.URN)
	}
}

// zeroValues: Go's types write some fields that the program did not set. The API server replaces these
// zeros by defaults, and the official provider then updates the object with every `pulumi up`.
func zeroValues(t *testing.T, r *testkit.Recorder) {
	// Definitions of kinds have them: that objects have a status, and the minimum or default of a field.
	ofDefinition := regexp.MustCompile(`^\.spec\.versions\.(subresources\.status$|schema\.openAPIV3Schema\.)`)
	for _, registration := range r.Resources {
		if strings.HasPrefix(registration.TypeToken, "kubernetes:") {
			for _, path := range zeroes("", registration.Inputs.Mappable()) {
				assert.Regexp(t, ofDefinition, path, registration.URN)
			}
		}
	}
}

// written are fields whose zero value says something: no replica, no pod more or less, all pods, a directory
// that begins empty, no class of storage, the group without a name, an empty variable, no restart.
var written = []string{"replicas", "minAvailable", "maxUnavailable", "maxSurge", "podSelector", "emptyDir", "storageClassName", "apiGroups", "value", "maxRestarts"}

// zeroes lists the paths of null, 0, and what is empty, but not of false, which Go's types write only where required.
func zeroes(path string, value any) []string {
	var found []string
	empty := false
	switch value := value.(type) {
	case nil:
		empty = true
	case map[string]any:
		empty = len(value) == 0
		for _, name := range slices.Sorted(maps.Keys(value)) {
			found = append(found, zeroes(path+"."+name, value[name])...)
		}
	case []any:
		empty = len(value) == 0
		for _, inner := range value {
			found = append(found, zeroes(path, inner)...)
		}
	case string:
		empty = value == ""
	case float64:
		empty = value == 0
	}
	if empty && !slices.Contains(written, path[strings.LastIndex(path, ".")+1:]) {
		found = append(found, path)
	}
	return found
}

// providers: nothing goes to kubectl's current cluster, and an existing cluster has nothing of Google Cloud.
func providers(t *testing.T, r *testkit.Recorder) {
	for _, registration := range r.Resources {
		if registration.Custom && strings.HasPrefix(registration.TypeToken, "kubernetes:") {
			assert.Contains(t, registration.Provider, "pulumi:providers:kubernetes::", registration.URN)
			assert.NotContains(t, registration.Provider, "default", registration.URN)
		}
		if len(r.Some(testkit.Cluster)) == 0 {
			assert.NotContains(t, registration.URN, "gcp:")
		}
	}
}

// TestJobsKeepTheirDataApart: each job has its own NATS, which no other job reaches.
func TestJobsKeepTheirDataApart(t *testing.T) {
	recorder := programtest.DeployFile(t, "examples/Pulumi.jobs.yaml")
	brokers := map[string]string{"ranking": "persia-nats-service", "retrieval": "retrieval-nats"}
	assert.Len(t, recorder.All(t, testkit.NATSCluster), len(brokers))
	for job, broker := range brokers {
		out := fmt.Sprint(testkit.At(t, recorder.One(t, testkit.NetworkPolicy, job), "spec.egress"))
		in := fmt.Sprint(testkit.At(t, recorder.One(t, testkit.NetworkPolicy, broker), "spec.ingress"))
		for other := range brokers {
			assert.Equal(t, job == other, strings.Contains(out, "nats_cluster:"+brokers[other]), "%s to the NATS of %s", job, other)
			assert.Equal(t, job == other, strings.Contains(in, "persia_job:"+other), "%s to the NATS of %s", other, job)
		}
	}
}

// hashedNames: a name that changes with the content makes another resource. An interrupted update keeps the old one in
// the state, to be deleted, and its name is taken if the edit is taken back.
func hashedNames(t *testing.T, r *testkit.Recorder) {
	hash := regexp.MustCompile(`-[0-9a-f]{8}$`)
	for _, registration := range r.Resources {
		// The name of a service account has a hash of the stack's name.
		if strings.HasPrefix(registration.TypeToken, "kubernetes:") && !strings.HasSuffix(registration.TypeToken, ":ServiceAccount") {
			name := testkit.At(t, registration, "metadata.name").(string)
			assert.True(t, strings.HasSuffix(registration.URN, hash.FindString(name)), "%s is named %s", registration.URN, name)
		}
	}
}

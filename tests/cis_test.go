package tests

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// cisSet holds in the plan of a stack each item of the CIS benchmark for GKE that
// docs/reference/security.md calls set.
var cisSet = map[string]func(cisPlan){
	"4.1.1": func(p cisPlan) { p.binds(func(role string) bool { return role != "cluster-admin" }, anyone) },
	"4.1.2": func(p cisPlan) {
		p.allows("ClusterRole", func(r rbacv1.PolicyRule) bool { return !slices.Contains(r.Resources, "secrets") })
	},
	"4.1.3":  func(p cisPlan) { p.allows("", noWildcard) },
	"4.1.4":  cisPlan.accounts,
	"4.1.5":  cisPlan.accounts,
	"4.1.6":  cisPlan.noSystemGroups,
	"4.1.7":  func(p cisPlan) { p.allows("", noEscalation) },
	"4.1.8":  cisPlan.noSystemGroups,
	"4.1.9":  cisPlan.noSystemGroups,
	"4.1.10": cisPlan.noSystemGroups,
	"4.2.1":  cisPlan.podSecurity,
	"4.3.1":  func(p cisPlan) { p.cluster("datapathProvider", "ADVANCED_DATAPATH") },
	"4.3.2":  cisPlan.networkPolicies,
	"4.6.1":  cisPlan.namespaces,
	"4.6.2":  cisPlan.seccomp,
	"4.6.4":  cisPlan.namespaces,
	"5.1.3":  cisPlan.nodeRoles,
	"5.2.1": func(p cisPlan) {
		p.cluster("nodeConfig.serviceAccount", p.name+"-nodes@my-project.iam.gserviceaccount.com")
		p.pools("nodeConfig.serviceAccount", p.name+"-nodes@my-project.iam.gserviceaccount.com")
	},
	"5.2.2": func(p cisPlan) { p.cluster("workloadIdentityConfig.workloadPool", "my-project.svc.id.goog") },
	"5.4.1": func(p cisPlan) {
		p.pools("nodeConfig.workloadMetadataConfig.mode", "GKE_METADATA")
		p.pools(`nodeConfig.metadata["disable-legacy-endpoints"]`, "true")
	},
	"5.5.1": func(p cisPlan) { p.poolsBut(installsDriver, "nodeConfig.imageType", "COS_CONTAINERD") },
	"5.5.2": func(p cisPlan) { p.pools("management.autoRepair", true) },
	"5.5.3": func(p cisPlan) { p.pools("management.autoUpgrade", true) },
	"5.5.4": func(p cisPlan) { p.cluster("releaseChannel.channel", "REGULAR") },
	"5.5.5": func(p cisPlan) { p.cluster("enableShieldedNodes", true) },
	"5.5.6": func(p cisPlan) { p.pools("nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring", true) },
	"5.5.7": func(p cisPlan) {
		p.poolsBut(installsDriver, "nodeConfig.shieldedInstanceConfig.enableSecureBoot", true)
	},
	"5.6.2": func(p cisPlan) { p.cluster("ipAllocationPolicy.clusterSecondaryRangeName", "pods") },
	"5.6.3": func(p cisPlan) {
		p.cluster("masterAuthorizedNetworksConfig.cidrBlocks", []any{})
		p.cluster("masterAuthorizedNetworksConfig.gcpPublicCidrsAccessEnabled", false)
	},
	"5.6.5": func(p cisPlan) { p.cluster("privateClusterConfig.enablePrivateNodes", true) },
	"5.6.6": cisPlan.noFirewallRules,
	"5.7.1": func(p cisPlan) {
		p.cluster("loggingConfig.enableComponents", []any{"SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER"})
		assert.Contains(p, testkit.At(p.T, p.One(p.T, testkit.Cluster, p.name), "monitoringConfig.enableComponents"), "SYSTEM_COMPONENTS")
	},
	"5.8.3": func(p cisPlan) {
		assert.Nil(p, testkit.Found(p.T, p.One(p.T, testkit.Cluster, p.name), "enableLegacyAbac"))
	},
	"5.10.2": func(p cisPlan) {
		assert.Nil(p, testkit.Found(p.T, p.One(p.T, testkit.Cluster, p.name), "enableKubernetesAlpha"))
	},
	"5.10.4": func(p cisPlan) { p.cluster("binaryAuthorization.evaluationMode", "PROJECT_SINGLETON_POLICY_ENFORCE") },
	"5.10.5": func(p cisPlan) { p.cluster("securityPostureConfig.mode", "BASIC") },
	"external addresses of Services": func(p cisPlan) {
		p.cluster("serviceExternalIpsConfig.enabled", false)
	},
}

// cisInAllStacks are items that hold for every example, on a new and on an existing cluster.
var cisInAllStacks = []string{"4.1.1", "4.1.2", "4.1.3", "4.1.4", "4.1.5", "4.1.6", "4.1.7", "4.1.8", "4.1.9", "4.1.10", "4.3.2", "4.6.1", "4.6.4"}

// cisByGoogle holds in what GKE has answered for a new cluster each item that
// docs/reference/security.md leaves to GKE.
var cisByGoogle = map[string]func(t *testing.T, cluster map[string]any){
	"3.2.4": func(t *testing.T, cluster map[string]any) {
		for _, pool := range cluster["nodePools"].([]any) {
			assert.Equal(t, false, cisField(pool, "config", "kubeletConfig", "insecureKubeletReadonlyPortEnabled"))
		}
		assert.Equal(t, false, cisField(cluster, "nodePoolAutoConfig", "nodeKubeletConfig", "insecureKubeletReadonlyPortEnabled"))
	},
	"5.8.1": func(t *testing.T, cluster map[string]any) {
		assert.NotNil(t, cisField(cluster, "masterAuth"))
		assert.Nil(t, cisField(cluster, "masterAuth", "clientCertificate"))
		assert.NotEqual(t, true, cisField(cluster, "masterAuth", "clientCertificateConfig", "issueClientCertificate"))
	},
	"5.10.1": func(t *testing.T, cluster map[string]any) {
		assert.Contains(t, []any{nil, true}, cisField(cluster, "addonsConfig", "kubernetesDashboard", "disabled"))
	},
}

// TestCIS holds the table of the CIS benchmark for GKE in docs/reference/security.md: each item
// that is set is in the plan of each cluster, each that GKE sets is in the answer
// recorded of it, and no other item is said to be either.
func TestCIS(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "security.md"))
	require.NoError(t, err)
	states := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+\.[\d., –-]*\d|[a-z][^|]*Services) [^|]*\| (set|yours|GKE|not applicable) \|`).FindAllStringSubmatch(string(text), -1) {
		for item := range strings.SplitSeq(row[1], ", ") {
			require.NotContains(t, states, item)
			states[item] = row[2]
		}
	}
	for item, state := range states {
		assert.Equal(t, state == "set", cisSet[item] != nil, "%s is %s", item, state)
		assert.Equal(t, state == "GKE", cisByGoogle[item] != nil, "%s is %s", item, state)
	}
	plans := map[string]*testkit.Recorder{}
	for _, path := range programtest.StackFiles(t) {
		plans[path] = programtest.DeployFile(t, path)
	}
	plans["prod with PERSIA's operator"] = programtest.MustDeploy(t, programtest.LeftToOperator(t), nil)
	for item, hold := range cisSet {
		assert.Equal(t, "set", states[item], item)
		t.Run(item, func(t *testing.T) {
			hold(cisPlan{t, plans["Pulumi.dev.yaml"], "persia-dev"})
			hold(cisPlan{t, plans["Pulumi.prod.yaml"], "persia-prod"})
			for path, plan := range plans {
				if slices.Contains(cisInAllStacks, item) {
					hold(cisPlan{t, plan, path})
				}
			}
		})
	}
	answer := recordedCluster(t)
	for item, hold := range cisByGoogle {
		assert.Equal(t, "GKE", states[item], item)
		t.Run(item, func(t *testing.T) { hold(t, answer) })
	}
}

// recordedCluster is a cluster as GKE has answered it.
func recordedCluster(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "sandbox", "gcp", "google", "answers.json"))
	require.NoError(t, err)
	var answers struct {
		Resources map[string]struct {
			Origin string         `json:"origin"`
			Get    map[string]any `json:"get"`
		} `json:"resources"`
	}
	require.NoError(t, json.Unmarshal(text, &answers))
	cluster := answers.Resources["container.cluster.regional"]
	require.Equal(t, "real", cluster.Origin)
	return cluster.Get
}

// cisField is a field at a path of names, or nil.
func cisField(of any, path ...string) any {
	for _, name := range path {
		object, _ := of.(map[string]any)
		of = object[name]
	}
	return of
}

// cisPlan is the plan of a stack with a cluster of its own.
type cisPlan struct {
	*testing.T
	*testkit.Recorder
	name string
}

func (p cisPlan) cluster(path string, want any) {
	p.Helper()
	assert.Equal(p, want, testkit.At(p.T, p.One(p.T, testkit.Cluster, p.name), path), "%s: %s", p.name, path)
}

func (p cisPlan) pools(path string, want any) {
	p.Helper()
	p.poolsBut(func(testkit.Resource, *testing.T) bool { return false }, path, want)
}

func (p cisPlan) poolsBut(excepted func(testkit.Resource, *testing.T) bool, path string, want any) {
	p.Helper()
	for _, pool := range p.All(p.T, testkit.NodePool) {
		if !excepted(pool, p.T) {
			assert.Equal(p, want, testkit.At(p.T, pool, path), "%s: %s", pool.URN, path)
		}
	}
}

// installsDriver reports whether a DaemonSet installs the driver of the GPUs of a pool,
// which is made for Ubuntu and not signed.
func installsDriver(pool testkit.Resource, t *testing.T) bool {
	return testkit.Found(t, pool, "nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion") == "INSTALLATION_DISABLED"
}

// noFirewallRules: of Compute Engine a stack has networks, disks and placement alone. Firewalls,
// their policies and addresses are others.
func (p cisPlan) noFirewallRules() {
	found := 0
	for _, registration := range p.Resources {
		kind, compute := strings.CutPrefix(registration.TypeToken, "gcp:compute/")
		if !compute {
			continue
		}
		found++
		_, kind, _ = strings.Cut(kind, ":")
		assert.Contains(p, []string{"Network", "Subnetwork", "Router", "RouterNat", "Disk", "ResourcePolicy"}, kind, registration.URN)
	}
	assert.Positive(p, found, p.name)
}

func (p cisPlan) nodeRoles() {
	var roles []any
	for _, grant := range p.All(p.T, testkit.ProjectMember) {
		roles = append(roles, testkit.At(p.T, grant, "role"))
	}
	assert.ElementsMatch(p, []any{"roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader"}, roles)
}

// objects decodes all objects of a kind.
func objects[T any](p cisPlan, kind string) []T {
	p.Helper()
	var decoded []T
	for _, registration := range p.Resources {
		if strings.HasPrefix(registration.TypeToken, "kubernetes:") && strings.HasSuffix(registration.TypeToken, ":"+kind) {
			decoded = append(decoded, testkit.Object[T](p.T, registration))
		}
	}
	require.NotEmpty(p, decoded, kind)
	return decoded
}

// allows checks the rules of the roles of a kind, or of both kinds.
func (p cisPlan) allows(kind string, good func(rbacv1.PolicyRule) bool) {
	p.Helper()
	var rules []rbacv1.PolicyRule
	for _, role := range objects[rbacv1.ClusterRole](p, "ClusterRole") {
		rules = append(rules, role.Rules...)
	}
	if kind == "" {
		for _, role := range objects[rbacv1.Role](p, "Role") {
			rules = append(rules, role.Rules...)
		}
	}
	for _, rule := range rules {
		assert.True(p, good(rule), "%s: %v", p.name, rule)
	}
}

func noWildcard(rule rbacv1.PolicyRule) bool {
	return !slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*")
}

func noEscalation(rule rbacv1.PolicyRule) bool {
	return !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains([]string{"bind", "impersonate", "escalate"}, verb) })
}

// binds checks the roles and subjects of all bindings.
func (p cisPlan) binds(role func(string) bool, subject func(rbacv1.Subject) bool) {
	p.Helper()
	check := func(ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		assert.True(p, role(ref.Name), "%s: %s", p.name, ref.Name)
		for _, s := range subjects {
			assert.True(p, subject(s), "%s: %v", p.name, s)
		}
	}
	for _, binding := range objects[rbacv1.ClusterRoleBinding](p, "ClusterRoleBinding") {
		check(binding.RoleRef, binding.Subjects)
	}
	for _, binding := range objects[rbacv1.RoleBinding](p, "RoleBinding") {
		check(binding.RoleRef, binding.Subjects)
	}
}

func anyone(rbacv1.Subject) bool { return true }

func (p cisPlan) noSystemGroups() {
	p.binds(func(string) bool { return true }, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Name != "default"
	})
}

// podSecurity: kube-system, where the driver is, is GKE's.
func (p cisPlan) podSecurity() {
	for _, namespace := range objects[corev1.Namespace](p, "Namespace") {
		assert.Contains(p, []string{"baseline", "restricted"}, namespace.Labels["pod-security.kubernetes.io/enforce"], namespace.Name)
	}
}

// networkPolicies checks that each namespace has a policy that denies all connections, and no
// policy that allows all.
func (p cisPlan) networkPolicies() {
	closed := closedNamespaces(objects[networkingv1.NetworkPolicy](p, "NetworkPolicy"))
	for _, namespace := range objects[corev1.Namespace](p, "Namespace") {
		assert.True(p, closed[namespace.Name], namespace.Name)
	}
}

// closedNamespaces returns the namespaces in which pods have only the connections that a policy
// allows.
func closedNamespaces(policies []networkingv1.NetworkPolicy) map[string]bool {
	closed, open := map[string]bool{}, map[string]bool{}
	for _, policy := range policies {
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
	maps.DeleteFunc(closed, func(namespace string, _ bool) bool { return open[namespace] })
	return closed
}

func TestClosedNamespaces(t *testing.T) {
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	policy := func(spec networkingv1.NetworkPolicySpec) networkingv1.NetworkPolicy {
		return networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "persia"}, Spec: spec}
	}
	nobody := policy(networkingv1.NetworkPolicySpec{PolicyTypes: both})
	everybody := policy(networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}})
	some := policy(networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "nats"}}, Ingress: []networkingv1.NetworkPolicyIngressRule{{}},
	})
	for name, test := range map[string]struct {
		policies []networkingv1.NetworkPolicy
		closed   bool
	}{
		"no policy":                {nil, false},
		"nobody":                   {[]networkingv1.NetworkPolicy{nobody}, true},
		"nobody, then everybody":   {[]networkingv1.NetworkPolicy{nobody, everybody}, false},
		"everybody, then nobody":   {[]networkingv1.NetworkPolicy{everybody, nobody}, false},
		"nobody, but some pods do": {[]networkingv1.NetworkPolicy{nobody, some}, true},
		"nobody, in one direction": {[]networkingv1.NetworkPolicy{policy(networkingv1.NetworkPolicySpec{PolicyTypes: both[:1]})}, false},
		"for some pods":            {[]networkingv1.NetworkPolicy{some}, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.closed, closedNamespaces(test.policies)["persia"])
		})
	}
}

// namespaces checks that objects are in the stack's namespaces, and the driver in kube-system.
func (p cisPlan) namespaces() {
	for _, registration := range p.Resources {
		if namespace, ok := testkit.Lookup(p.T, registration, "metadata.namespace"); ok {
			assert.Contains(p, []any{"persia", "nats-io", "persia-operator", "jobset-system", "kueue-system", "pedl", "pedl-agents", "kube-system"}, namespace, registration.URN)
		}
	}
}

// podSpecs returns the pod specifications of all workloads.
func (p cisPlan) podSpecs() map[string]corev1.PodSpec {
	specs := map[string]corev1.PodSpec{}
	for _, registration := range p.Resources {
		for _, kind := range []string{"StatefulSet", "Deployment", "DaemonSet", "Job"} {
			if !strings.HasPrefix(registration.TypeToken, "kubernetes:") || !strings.HasSuffix(registration.TypeToken, ":"+kind) {
				continue
			}
			text, err := json.Marshal(testkit.At(p.T, registration, "spec.template.spec"))
			require.NoError(p, err)
			var spec corev1.PodSpec
			require.NoError(p, json.Unmarshal(text, &spec))
			specs[registration.URN] = spec
		}
	}
	require.NotEmpty(p, specs)
	return specs
}

// accounts checks that only operators, and the completions of operator jobs, have a token, each with
// an account of its own.
func (p cisPlan) accounts() {
	for urn, spec := range p.podSpecs() {
		if automount := spec.AutomountServiceAccountToken; automount != nil && !*automount {
			continue
		}
		name := urn[strings.LastIndex(urn, ":")+1:]
		account, operator := map[string]string{
			"nats-operator": "nats-operator", "persia-operator": "persia-operator", "jobset": "jobset-controller", "kueue": "kueue",
		}[name]
		if completion := strings.Contains(urn, "persia:operator:Job$") && strings.HasSuffix(name, "-completion"); completion {
			account = name
		} else {
			assert.True(p, operator, "%s: %s has a token", p.name, urn)
		}
		assert.Equal(p, account, spec.ServiceAccountName, p.name)
	}
}

// seccomp: containers that are not privileged have the profile of their runtime.
func (p cisPlan) seccomp() {
	for urn, spec := range p.podSpecs() {
		if strings.HasSuffix(urn, "::nvidia-driver") {
			continue
		}
		if assert.NotNil(p, spec.SecurityContext, urn) && assert.NotNil(p, spec.SecurityContext.SeccompProfile, urn) {
			assert.Equal(p, corev1.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type, urn)
		}
	}
}

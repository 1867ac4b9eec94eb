package jobset

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/config"
	"persia/kube"
)

// TestDefinition: the definition has no descriptions, and the fields that the program writes.
func TestDefinition(t *testing.T) {
	assert.NotContains(t, string(definitionText), "description:")
	crd, err := definition()
	require.NoError(t, err)
	require.Len(t, crd.Spec.Versions, 1)
	assert.Equal(t, apiVersion, crd.Spec.Group+"/"+crd.Spec.Versions[0].Name)
	assert.Equal(t, Kind, crd.Spec.Names.Kind)
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for _, field := range []string{"replicatedJobs", "network", "successPolicy", "failurePolicy", "suspend"} {
		assert.Contains(t, spec, field)
	}
}

// TestOneVersion: the image, the definition and the controller of the sandbox are of one
// version.
func TestOneVersion(t *testing.T) {
	text, err := os.ReadFile("../../sandbox/toolchain/jobset/go.mod")
	require.NoError(t, err)
	found := regexp.MustCompile(`sigs\.k8s\.io/jobset (v\S+)`).FindStringSubmatch(string(text))
	require.Len(t, found, 2)
	assert.Equal(t, found[1], config.ImageJobSet.Tag)
}

// TestWebhooks checks that the webhooks concern JobSets only, and no pod, on the port that the control
// plane of a private cluster reaches.
func TestWebhooks(t *testing.T) {
	served := webhooks("jobs")
	assert.Equal(t, "jobs", served.ObjectNamespace)
	for _, webhook := range slices.Concat(served.Mutating.Webhooks, served.Validating.Webhooks) {
		assert.Equal(t, []string{"jobsets"}, webhook.Resources)
	}
	assert.Contains(t, settings, "port: 10250")
}

// TestRights: the controller writes nothing outside the namespace of jobs but its own webhooks
// and its certificate.
func TestRights(t *testing.T) {
	writes := func(rule rbacv1.PolicyRule) bool {
		return strings.Join(rule.Verbs, ",") != "get,list,watch" && len(rule.ResourceNames) == 0
	}
	for _, rule := range clusterRules() {
		if writes(rule) {
			assert.Equal(t, []string{"list", "watch"}, rule.Verbs, "%v", rule.Resources)
		}
		assert.NotContains(t, rule.Resources, "secrets")
	}
	operator := controller(ControllerArgs{JobNamespace: "jobs"}, kube.Kind{})
	assert.Equal(t, "jobs", operator.RoleNamespace)
}

package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"persia/kube"
)

// TestOperator: the operator has the permissions that its source uses, and its namespace
// admits nothing more than it needs.
func TestOperator(t *testing.T) {
	const image = "registry.example.com/persia@sha256:0"
	crd, err := definition()
	require.NoError(t, err)
	o := operator(OperatorArgs{Image: image, JobNamespace: "persia"}, kube.Kind{Resource: "persia-operator", Definition: crd})
	assert.Equal(t, "persiajobs.persia.com", o.Kinds[0].Definition.Name)
	assert.Equal(t, "persia-operator", o.Namespace)
	assert.Equal(t, "restricted", o.PodSecurity["pod-security.kubernetes.io/enforce"])
	assert.NotZero(t, o.User)

	assert.Equal(t, "persia", o.RoleNamespace)
	assert.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "services"}, Verbs: []string{"create", "delete", "list"}},
	}, o.Role)
	assert.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{"persia.com"}, Resources: []string{"persiajobs"}, Verbs: []string{"list", "patch", "watch"}},
	}, o.ClusterRole)

	assert.Equal(t, image, o.Container.Image)
	assert.Equal(t, []string{"persia-k8s-utils", "operator"}, o.Container.Args)
	assert.Equal(t, "100m", o.Container.Resources.Requests.Cpu().String())
	assert.Equal(t, "128Mi", o.Container.Resources.Requests.Memory().String())
}

// TestPodsOfJobsHaveNoToken: the operator names no account for them.
func TestPodsOfJobsHaveNoToken(t *testing.T) {
	account := podAccount("persia")
	assert.Equal(t, "persia/default", account.Namespace+"/"+account.Name)
	assert.False(t, *account.AutomountServiceAccountToken)
}

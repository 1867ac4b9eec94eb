package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestReadOperator reads what differs between operators, and gives all objects their labels.
func TestReadOperator(t *testing.T) {
	operator, err := ReadOperator(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: example, namespace: examples}
spec:
  template:
    spec:
      securityContext: {runAsUser: 1000}
      containers: [{image: {{.}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: example, namespace: things}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: v1
kind: Secret
metadata: {name: certificate, namespace: examples, annotations: {resource: other}}
`, "example:1.2.3")
	require.NoError(t, err)
	assert.Equal(t, "things", operator.RoleNamespace)
	assert.Equal(t, "example:1.2.3", operator.deployment().Spec.Template.Spec.Containers[0].Image)
	require.Len(t, operator.Before, 1)
	assert.Equal(t, "other", operator.Before[0].Resource)
	assert.Equal(t, Meta("examples", "certificate", operator.labels()).Labels, operator.Before[0].Object.(*corev1.Secret).Labels)

	_, err = ReadOperator("apiVersion: v1\nkind: Secret\nmetadata: {nme: a}", nil)
	assert.ErrorContains(t, err, `unknown field "nme"`)
}

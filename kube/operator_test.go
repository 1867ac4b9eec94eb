package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestReadOperator reads what differs between operators, and gives all objects their labels.
func TestReadOperator(t *testing.T) {
	operator, err := Operator{Manifest: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: example, namespace: examples}
spec:
  template:
    spec:
      securityContext: {runAsUser: 1000}
      containers: [{image: {{.Image}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: example, namespace: things}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: v1
kind: Secret
metadata: {name: certificate, namespace: examples, annotations: {resource: other}}
`}.read("example:1.2.3")
	require.NoError(t, err)
	assert.Equal(t, "things", operator.roleNamespace)
	assert.Equal(t, "example:1.2.3", operator.deployment().Spec.Template.Spec.Containers[0].Image)
	require.Len(t, operator.before, 1)
	assert.Equal(t, "other", operator.before[0].resource)
	assert.Equal(t, Meta("examples", "certificate", operator.labels()).Labels, operator.before[0].object.(*corev1.Secret).Labels)

	_, err = Operator{Manifest: "apiVersion: v1\nkind: Secret\nmetadata: {nme: a}"}.read("")
	assert.ErrorContains(t, err, `unknown field "nme"`)
}

package controlplane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRetryCleanups: only a cleanup that failed is asked for again.
func TestRetryCleanups(t *testing.T) {
	definition := func(conditions ...extensionsv1.CustomResourceDefinitionCondition) *extensionsv1.CustomResourceDefinition {
		return &extensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "rules.monitoring.googleapis.com", ResourceVersion: "254"},
			Status:     extensionsv1.CustomResourceDefinitionStatus{Conditions: conditions},
		}
	}
	established := extensionsv1.CustomResourceDefinitionCondition{Type: extensionsv1.Established, Status: extensionsv1.ConditionTrue}
	terminating := func(reason string) extensionsv1.CustomResourceDefinitionCondition {
		return extensionsv1.CustomResourceDefinitionCondition{Type: extensionsv1.Terminating, Reason: reason}
	}
	cases := map[string]struct {
		definition *extensionsv1.CustomResourceDefinition
		want       map[string]string
	}{
		"in use":      {definition(established), nil},
		"on its way":  {definition(established, terminating("InstanceDeletionInProgress")), nil},
		"failed":      {definition(established, terminating("InstanceDeletionFailed")), map[string]string{retriedAnnotation: "254"}},
		"almost gone": {definition(established, terminating("InstanceDeletionCompleted")), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset(c.definition)
			require.NoError(t, retryCleanups(t.Context(), client, []*extensionsv1.CustomResourceDefinition{c.definition}))
			got, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), c.definition.Name, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, c.want, got.Annotations)
		})
	}
}

package storage

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
)

// TestPairs checks that the stack recreates a volume whose claim is gone, once.
func TestPairs(t *testing.T) {
	volume := resource.URN("urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolume::checkpoints")
	claim := resource.URN("urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolumeClaim::checkpoints")
	labelled := func(generation string) map[string]any {
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{generationLabel: generation}}}
	}
	for name, test := range map[string]struct {
		resources  map[resource.URN]map[string]any
		generation string
		replaced   bool
	}{
		"nothing":                {nil, "", false},
		"a pair":                 {map[resource.URN]map[string]any{volume: {}, claim: {}}, "", false},
		"a claim alone":          {map[resource.URN]map[string]any{claim: {}}, "", false},
		"a volume alone":         {map[resource.URN]map[string]any{volume: {}}, "1", true},
		"a renewed pair":         {map[resource.URN]map[string]any{volume: labelled("1"), claim: {}}, "1", false},
		"a renewed volume alone": {map[resource.URN]map[string]any{volume: labelled("1")}, "2", true},
		"the volume of another": {map[resource.URN]map[string]any{
			"urn:pulumi:dev::persia::kubernetes:core/v1:PersistentVolume::checkpoints": {}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
			options, err := pulumi.NewResourceOptions(Pairs(test.resources)["checkpoints"].renew(object)...)
			require.NoError(t, err)
			assert.Equal(t, test.generation, object.Labels[generationLabel])
			var replacing []string
			if test.replaced {
				replacing = []string{"metadata"} // has the label
			}
			assert.ElementsMatch(t, replacing, options.ReplaceOnChanges)
			assert.Equal(t, test.replaced, options.DeleteBeforeReplace, "two volumes of a name cannot be")
		})
	}
}

// TestCheckPairs: an edit that would replace a claim, and leave its volume Released, is
// refused.
func TestCheckPairs(t *testing.T) {
	claim := resource.URN("urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolumeClaim::checkpoints")
	with := func(modes ...any) map[resource.URN]map[string]any {
		return map[resource.URN]map[string]any{claim: {"spec": map[string]any{"accessModes": modes}}}
	}
	many := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	for name, test := range map[string]struct {
		resources map[resource.URN]map[string]any
		wanted    []corev1.PersistentVolumeAccessMode
		refused   bool
	}{
		"no claim":      {nil, many, false},
		"the same":      {with("ReadWriteMany"), many, false},
		"another":       {with("ReadWriteOnce"), many, true},
		"one more":      {with("ReadWriteMany"), append(many, corev1.ReadOnlyMany), true},
		"another order": {with("ReadOnlyMany", "ReadWriteMany"), append(many, corev1.ReadOnlyMany), true},
	} {
		t.Run(name, func(t *testing.T) {
			stored := config.StoredVolume{Path: field.NewPath("persia:storage").Index(0)}
			stored.Name, stored.AccessModes = "checkpoints", test.wanted
			err := CheckPairs(Pairs(test.resources), []config.StoredVolume{stored})
			if !test.refused {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, "persia:storage[0]: the access modes are")
		})
	}
}

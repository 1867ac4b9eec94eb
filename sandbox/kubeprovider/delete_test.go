package kubeprovider

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPropagation checks that the objects of an owner are gone when the owner is.
func TestPropagation(t *testing.T) {
	for annotation, want := range map[string]metav1.DeletionPropagation{
		"": metav1.DeletePropagationForeground, "foreground": metav1.DeletePropagationForeground,
		"background": metav1.DeletePropagationBackground, "Orphan": metav1.DeletePropagationOrphan,
	} {
		obj := objectIn(t, `{apiVersion: v1, kind: ConfigMap}`)
		obj.SetAnnotations(map[string]string{annotationPropagation: annotation})
		assert.Equal(t, want, propagation(obj), annotation)
	}
}

func TestWhoseDeletionIsNotAwaited(t *testing.T) {
	for manifest, want := range map[string]bool{
		`{apiVersion: apps/v1, kind: StatefulSet}`:                                                               false,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {annotations: {pulumi.com/skipAwait: "true"}}}`:      true,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {pulumi.com/skipAwait: "true"}}}`: false,
	} {
		assert.Equal(t, want, skipsDelete(objectIn(t, manifest)), manifest)
	}
}

package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// TestManifest: the golden plans show what manifests register.
func TestManifest(t *testing.T) {
	assert.PanicsWithError(t, `Secret in a manifest: json: unknown field "nme"`, func() {
		Manifest("apiVersion: v1\nkind: Secret\nmetadata: {nme: a}", nil)
	})
	for _, text := range []string{"on", "1e3", "a: {b}", "{{.}}", "a\nb\t\x7f\u0085\ufeff\u2028é😀<&>\"'\\"} {
		set := Manifest("apiVersion: v1\nkind: ConfigMap\ndata: {a: {{json .}}}", text)[0].(*corev1.ConfigMap)
		assert.Equal(t, text, set.Data["a"])
	}
}

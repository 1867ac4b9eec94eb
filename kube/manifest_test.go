package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestManifest: the golden plans show what manifests register.
func TestManifest(t *testing.T) {
	assert.PanicsWithError(t, `Secret in a manifest: error unmarshaling JSON: while decoding JSON: json: unknown field "nme"`, func() {
		Manifest("apiVersion: v1\nkind: Secret\nmetadata: {nme: a}", nil)
	})
}

package operatorspec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/stacktest"
)

// left is a job that the operator runs.
var left = stacktest.Edits{
	"persia:jobs[0].engine":      "operator",
	"persia:nodePools[1].taints": nil,
	"persia:storage[0].gcsFuse":  nil,
	"persia:storage[0].nfs":      stacktest.Edits{"server": "10.0.0.2", "path": "/"},
}

const digest = "@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"

// TestImage checks that the image of the operator, which can create pods, is fixed.
func TestImage(t *testing.T) {
	const path = "persia:operator.image"
	image := func(value any) stacktest.Edits { return left.And(stacktest.Edits{path: value}) }
	stacktest.Refused(t, []stacktest.Refusal{
		{"none", left, path, []string{"Required", "by its digest", "examples/training/Dockerfile"}},
		{"without a tag", image("persiaml/persia-cpu-runtime"), path, []string{`"persiaml/persia-cpu-runtime"`, "tomorrow", "write a digest"}},
		{"latest", image("persiaml/persia-cpu-runtime:latest"), path, []string{"tomorrow", "write a digest"}},
		{"latest at a port", image("registry.example.com:5000/persia:latest"), path, []string{"tomorrow"}},
		{"no image", image("Persia:1"), path, []string{`"Persia:1"`, "image reference"}},
	})
	for _, known := range []string{"persiaml/persia-cpu-runtime" + digest, "registry.example.com/persia:0.1.dev251", "persiaml/persia-cpu-runtime:latest" + digest} {
		stack, err := stacktest.Load(t, image(known))
		require.NoError(t, err, known)
		assert.Equal(t, known, stack.Operator.Image)
	}
}

// TestNoImage checks that the image is optional if no job uses the operator.
func TestNoImage(t *testing.T) {
	_, err := stacktest.Load(t, nil)
	assert.NoError(t, err)
}

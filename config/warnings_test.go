package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/stacktest"
)

// TestWarningOfNewerGPUs: upstream's default image computes on no GPU newer than A100.
func TestWarningOfNewerGPUs(t *testing.T) {
	const says = "PyTorch 1.8, which has no kernels for"
	a3 := edits{"persia:nodePools[0].machineType": "a3-highgpu-8g", "persia:nodePools[0].gpu.type": "nvidia-h100-80gb",
		"persia:nvidiaDriver": edits{"installer": "managed"}}
	withImage := edits{"persia:jobs[0].nnWorker.image": "registry.example.com/trainer:2"}
	for path, value := range a3 {
		withImage[path] = value
	}
	for name, test := range map[string]struct {
		edits edits
		warns bool
	}{
		"A100":                     {edits{}, false},
		"H100":                     {a3, true},
		"H100 and an image for it": {withImage, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := stacktest.Load(t, test.edits)
			require.NoError(t, err)
			warnings := strings.Join(s.Warnings(), "\n")
			assert.Equal(t, test.warns, strings.Contains(warnings, says), warnings)
			assert.Equal(t, test.warns, strings.Contains(warnings, "persia:jobs[0].nnWorker.image"), warnings)
		})
	}
}

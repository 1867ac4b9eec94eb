package gcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFamilies: the families that refusals name are those of the catalogue, each once.
func TestFamilies(t *testing.T) {
	assert.Equal(t, []string{"a2", "a3", "a4", "c2", "c2d", "c3", "c3d", "c4", "c4d", "g2", "n2", "n2d"}, CompactFamilies())
	assert.Equal(t, []string{"a2", "a3", "a4", "g2", "g4", "n1"}, GPUFamilies())
}

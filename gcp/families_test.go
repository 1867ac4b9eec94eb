package gcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFamilies checks that refusals name each family of the catalogue once.
func TestFamilies(t *testing.T) {
	assert.Equal(t, []string{"a2", "a3", "a4", "c2", "c2d", "c3", "c3d", "c4", "c4d", "g2", "n2", "n2d"}, CompactFamilies())
	assert.Equal(t, []string{"a2", "a3", "a4", "g2", "g4", "n1"}, GPUFamilies())
}

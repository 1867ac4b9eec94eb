package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRolloutTimeouts: an update has an hour, and two minutes for each replica: of 240 dataloaders, one
// by one, more than the five hours that it takes at 75 seconds each.
func TestRolloutTimeouts(t *testing.T) {
	small, large := rolloutTimeouts(1), rolloutTimeouts(240)
	assert.Equal(t, "60m", large.Create, "replicas start at once")
	assert.Equal(t, "60m", large.Delete)
	assert.Equal(t, "540m", large.Update)
	assert.Equal(t, "62m", small.Update)
}

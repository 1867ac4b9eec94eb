package kube

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRolloutTimeouts: an update of 240 dataloaders, one by one, has the five hours that
// it takes at 75 seconds each, and a small workload has an hour.
func TestRolloutTimeouts(t *testing.T) {
	small, large := rolloutTimeouts(1), rolloutTimeouts(240)
	assert.Equal(t, "60m", large.Create, "replicas start at once")
	assert.Equal(t, "60m", large.Delete)
	update, err := time.ParseDuration(large.Update)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, update, 240*75*time.Second)
	update, err = time.ParseDuration(small.Update)
	require.NoError(t, err)
	assert.LessOrEqual(t, update, 65*time.Minute)
}

package gke

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
)

// TestUpdateTimeout checks that an update has the time of all its rounds. At one node at a time,
// GKE needs seven hours for a hundred.
func TestUpdateTimeout(t *testing.T) {
	of := func(nodes int, upgrade config.Upgrade) time.Duration {
		limit, err := time.ParseDuration(updateTimeout(config.Pool{Nodes: &nodes, Upgrade: upgrade}))
		require.NoError(t, err)
		return limit
	}
	surge := func(maxSurge, maxUnavailable int) config.Upgrade {
		return config.Upgrade{MaxSurge: &maxSurge, MaxUnavailable: &maxUnavailable}
	}
	assert.GreaterOrEqual(t, of(100, surge(1, 0)), 7*time.Hour)
	assert.Less(t, of(100, surge(5, 0)), 6*time.Hour)
	assert.Equal(t, of(100, surge(5, 0)), of(100, surge(2, 3)))
	assert.LessOrEqual(t, of(1, surge(1, 0)), 150*time.Minute)
}

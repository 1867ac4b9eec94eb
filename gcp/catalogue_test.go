package gcp

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCatalogue checks each row by itself and what it refers to. Reading refuses unknown and double keys.
func TestCatalogue(t *testing.T) {
	c := tables()
	checkGPUs(t, c)
	checkPrices(t, c)
	count := 0
	for _, s := range c.Series {
		count += len(s.Types)
		for _, size := range s.Sizes {
			count += len(size.CPUs)
		}
		assert.NotEmpty(t, s.Disks, s.Prefix)
		assert.Subset(t, DiskTypes, s.Disks, s.Prefix)
		assert.Contains(t, []string{"", "only", "none"}, s.GVNIC, s.Prefix)
		assert.Contains(t, []string{"", "own", "shared"}, s.Quota, s.Prefix)
		least := 0
		for _, most := range slices.Sorted(maps.Keys(s.LocalSSDs)) {
			counts := s.LocalSSDs[most]
			assert.True(t, hasMachine(c, func(m Machine) bool {
				return strings.HasPrefix(m.Type, s.Prefix+"-") && m.CPUs > least && m.CPUs <= most
			}), "%s has no machine with %d to %d vCPUs", s.Prefix, least+1, most)
			assert.True(t, slices.IsSorted(counts), s.Prefix)
			assert.True(t, !s.Bundled || len(counts) == 1, "%s: bundled", s.Prefix)
			least = most
		}
	}
	assert.Len(t, c.machines, count, "a machine type is there twice")
	for name, m := range c.machines {
		assert.NotEmpty(t, m.series().Prefix, name)
		assert.Positive(t, m.CPUs, name)
		assert.Positive(t, m.MemoryBytes, name)
		assert.Equal(t, m.GPUs > 0, m.GPUType != "", name)
		if m.GPUs > 0 {
			assert.Contains(t, c.GPUs, m.GPUType, name)
		}
	}
}

func hasMachine(c catalogue, is func(Machine) bool) bool {
	for _, m := range c.machines {
		if is(m) {
			return true
		}
	}
	return false
}

func checkGPUs(t *testing.T, c catalogue) {
	for name, g := range c.GPUs {
		assert.NotEmpty(t, g.Quota, name)
		for count, most := range g.Attachable {
			assert.True(t, count > 0 && most > 0, name)
		}
	}
}

func checkPrices(t *testing.T, c catalogue) {
	for prefix, price := range c.MachinePrices {
		assert.True(t, hasMachine(c, func(m Machine) bool { return strings.HasPrefix(m.Type, prefix) }), prefix)
		assert.True(t, price.CPUs > 0 && price.OnDemand > 0 && price.Spot < price.OnDemand, prefix)
	}
	for name, price := range c.GPUPrices {
		assert.Contains(t, c.GPUs, name)
		assert.True(t, price.OnDemand > 0 && price.Spot < price.OnDemand, name)
	}
}

package gcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestListPrices compares with prices that the source gives for whole machine types in us-central1.
func TestListPrices(t *testing.T) {
	for name, want := range map[string]rate{
		"a2-highgpu-1g":   {3.673385, 1.293355},
		"a2-highgpu-2g":   {7.34677, 2.58671},
		"c2-standard-8":   {0.417616, 0.070544},
		"e2-standard-4":   {0.13402284, 0.053584},
		"g2-standard-4":   {0.706832255, 0.279932},
		"g2-standard-48":  {4.001665148, 1.574384},
		"m2-ultramem-208": {42.111936, 0},
		"n1-standard-1":   {0.04749975, 0.0130025},
		"n2-highmem-48":   {3.144336, 0.970368},
		"n2-standard-128": {6.215552, 1.918464},
	} {
		machine, known := Lookup(name)
		require.True(t, known, name)
		price, known := machine.ListPrice("us-central1", false)
		assert.True(t, known, name)
		assert.InDelta(t, want.OnDemand, price, 1e-6, name)
		spot, known := machine.ListPrice("us-central1", true)
		assert.Equal(t, want.Spot > 0, known, name)
		assert.InDelta(t, want.Spot, spot, 1e-6, name)
	}
}

func TestListPricesOfAttachedGPUs(t *testing.T) {
	n1, _ := Lookup("n1-standard-16")
	for name, want := range map[string]float64{
		"nvidia-tesla-p100": 0.759996 + 4*1.46,
		"nvidia-tesla-t4":   0.759996 + 4*0.35,
		"nvidia-tesla-v100": 0.759996 + 4*2.48,
	} {
		price, known := n1.WithGPUs(name, 4).ListPrice("us-central1", false)
		assert.True(t, known, name)
		assert.InDelta(t, want, price, 1e-6, name)
		_, known = n1.WithGPUs(name, 4).ListPrice("us-central1", true)
		assert.False(t, known, "spot price of %s", name)
	}
}

func TestNoListPrice(t *testing.T) {
	a2, _ := Lookup("a2-highgpu-8g")
	ultra, _ := Lookup("a2-ultragpu-8g")
	n1, _ := Lookup("n1-standard-16")
	for name, c := range map[string]struct {
		machine Machine
		region  string
	}{
		"region":       {a2, "europe-west4"},
		"no region":    {a2, ""},
		"family":       {ultra, "us-central1"},
		"attached GPU": {n1.WithGPUs("nvidia-tesla-p4", 4), "us-central1"},
	} {
		_, known := c.machine.ListPrice(c.region, false)
		assert.False(t, known, name)
	}
}

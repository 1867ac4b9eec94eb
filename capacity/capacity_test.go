package capacity

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/gcp"
)

// TestAllocatable compares with rounded or cut-off values: one may be off by less than one unit of its last digit.
func TestAllocatable(t *testing.T) {
	for _, row := range []struct{ machine, cpu, memoryGiB string }{
		{"a2-highgpu-1g", "11.90", "76.6"}, {"a2-highgpu-8g", "95.69", "648.8"}, {"a3-highgpu-8g", "207.4", "1798"},
		{"g2-standard-4", "3.92", "13.0"}, {"n1-standard-32", "31.85", "108.9"}, {"n1-highmem-96", "95.69", "594.8"},
		{"n2-standard-32", "31.85", "116.4"}, {"n2-standard-128", "127.6", "487"},
		{"n2-highmem-32", "31.85", "239.9"}, {"n2-highmem-128", "127.6", "826"}, {"c2-standard-30", "29.86", "108.9"},
		{"c3-standard-44", "43.8", "162.7"}, {"c4-standard-32", "31.85", "108.9"},
		{"m1-ultramem-160", "159.5", "3700"}, {"m2-ultramem-416", "415", "11349"},
		{"m3-ultramem-128", "127.6", "3758"}, {"e2-standard-4", "3.92", "13.0"},
	} {
		t.Run(row.machine, func(t *testing.T) {
			m, ok := gcp.Lookup(row.machine)
			require.True(t, ok, "not in the catalogue")
			got := Allocatable(m)
			assertDigits(t, "vCPU", row.cpu, float64(got.MilliCPU)/1000)
			assertDigits(t, "GiB", row.memoryGiB, float64(got.MemoryBytes)/GiB)
		})
	}
}

func assertDigits(t *testing.T, unit, want string, got float64) {
	t.Helper()
	_, decimals, _ := strings.Cut(want, ".")
	value, err := strconv.ParseFloat(want, 64)
	require.NoError(t, err)
	assert.InDelta(t, value, got, math.Pow10(-len(decimals)), unit)
}

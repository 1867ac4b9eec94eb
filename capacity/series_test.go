package capacity

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPartitions(t *testing.T) {
	for _, c := range []struct {
		gpuType, size string
		want          int
	}{
		{"nvidia-tesla-a100", "1g.5gb", 7},
		{"nvidia-tesla-a100", "2g.10gb", 3},
		{"nvidia-tesla-a100", "3g.20gb", 2},
		{"nvidia-tesla-a100", "7g.40gb", 1},
		{"nvidia-a100-80gb", "1g.10gb", 7},
		{"nvidia-h100-80gb", "1g.20gb", 4},
		{"nvidia-h200-141gb", "3g.71gb", 2},
		{"nvidia-tesla-a100", "1g.10gb", 0},
		{"nvidia-tesla-a100", "", 0},
		{"nvidia-l4", "1g.5gb", 0},
	} {
		assert.Equal(t, c.want, Partitions(c.gpuType, c.size), "%s of %s", c.size, c.gpuType)
	}
	assert.Equal(t, []string{"1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"}, PartitionSizes("nvidia-tesla-a100"))
	assert.Empty(t, PartitionSizes("nvidia-l4"))
}

// TestPartitionsFitAGPU holds the table against what a size says of itself: NgMgb
// takes N of a GPU's seven slices.
func TestPartitionsFitAGPU(t *testing.T) {
	var types []string
	for _, m := range catalogue {
		types = append(types, m.GPUType)
	}
	for gpuType, sizes := range partitions {
		assert.Contains(t, types, gpuType)
		for size, count := range sizes {
			slices, err := strconv.Atoi(size[:1])
			require.NoError(t, err)
			assert.LessOrEqual(t, slices*count, 7, "%s of %s", size, gpuType)
		}
	}
}

func TestLocalSSDs(t *testing.T) {
	for _, c := range []struct {
		machine string
		want    []int
	}{
		{"n1-standard-1", []int{1, 2, 3, 4, 5, 6, 7, 8, 16, 24}},
		{"n2-standard-8", []int{1, 2, 4, 8, 16, 24}},
		{"n2-highmem-32", []int{4, 8, 16, 24}},
		{"n2-highmem-128", []int{16, 24}},
		{"n2d-standard-224", []int{8, 16, 24}},
		{"c2-standard-30", []int{4, 8}},
		{"c2d-standard-112", []int{8}},
		{"a2-highgpu-1g", []int{1, 2, 4, 8}},
		{"a2-highgpu-8g", []int{8}},
		{"a2-megagpu-16g", []int{8}},
		{"a2-ultragpu-2g", []int{2}},
		{"a3-highgpu-8g", []int{16}},
		{"a3-megagpu-8g", []int{16}},
		{"a3-ultragpu-8g", []int{32}},
		{"g2-standard-16", []int{1}},
		{"g2-standard-24", []int{2}},
		{"g2-standard-32", []int{1}},
		{"g2-standard-96", []int{8}},
		{"m1-megamem-96", []int{1, 2, 3, 4, 5, 6, 7, 8}},
		{"m3-ultramem-32", []int{4, 8}},
		{"m3-megamem-128", []int{8}},
		{"m1-ultramem-160", nil},
		{"m2-ultramem-416", nil},
		{"e2-standard-8", nil},
		{"n4-standard-8", nil},
		{"c3-standard-44", nil},
		{"c4-standard-32", nil},
	} {
		m, ok := Lookup(c.machine)
		require.True(t, ok, c.machine)
		counts, known := m.LocalSSDs()
		assert.True(t, known, c.machine)
		assert.Equal(t, c.want, counts, c.machine)
	}
	_, known := Machine{Type: "c3-standard-8-lssd", CPUs: 8}.LocalSSDs()
	assert.False(t, known, "not in the catalogue")
}

// TestEveryRowOfLocalSSDsIsOfSomeMachine finds a pattern or a bound that is wrong.
func TestEveryRowOfLocalSSDsIsOfSomeMachine(t *testing.T) {
	unused := map[int]bool{}
	for i := range localSSDs {
		unused[i] = true
	}
	for _, m := range catalogue {
		if counts, _ := m.LocalSSDs(); counts != nil {
			i := slices.IndexFunc(localSSDs, func(row localSSDRow) bool { return &row.counts[0] == &counts[0] })
			delete(unused, i)
		}
	}
	assert.Empty(t, slices.Collect(maps.Keys(unused)))
}

func TestSeries(t *testing.T) {
	for _, c := range []struct {
		machine              string
		spot, compact, gvnic bool
	}{
		{"a2-highgpu-8g", true, true, false},
		{"a3-highgpu-8g", true, true, true},
		{"c2-standard-30", true, true, false},
		{"c4-standard-32", true, true, true},
		{"e2-standard-4", true, false, false},
		{"g2-standard-8", true, true, false},
		{"m2-ultramem-416", false, false, false},
		{"m3-ultramem-32", false, false, true},
		{"n1-standard-8", true, false, false},
		{"n2-highmem-32", true, true, false},
		{"n4-standard-8", true, false, true},
	} {
		m, ok := Lookup(c.machine)
		require.True(t, ok, c.machine)
		assert.Equal(t, c.spot, m.HasSpot(), c.machine)
		assert.Equal(t, c.compact, m.TakesCompactPlacement(), c.machine)
		assert.Equal(t, c.gvnic, m.NeedsGVNIC(), c.machine)
	}
}

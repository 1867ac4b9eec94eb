package gcp

import (
	"slices"
	"strconv"
	"strings"
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

// TestPartitionsFitAGPU compares the table with the names of the sizes: NgMgb takes N of a GPU's
// seven slices.
func TestPartitionsFitAGPU(t *testing.T) {
	for gpuType, g := range gpus {
		for size, count := range g.partitions {
			slices, err := strconv.Atoi(size[:1])
			require.NoError(t, err)
			assert.LessOrEqual(t, slices*count, 7, "%s of %s", size, gpuType)
		}
	}
}

// TestEveryGPUIsKnown finds a machine whose GPU has no quota.
func TestEveryGPUIsKnown(t *testing.T) {
	for _, m := range catalogue {
		if m.GPUType != "" {
			assert.Contains(t, gpus, m.GPUType, m.Type)
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

// TestEveryRowOfLocalSSDsIsOfSomeMachine finds a bound that is wrong.
func TestEveryRowOfLocalSSDsIsOfSomeMachine(t *testing.T) {
	for _, s := range series {
		least := 0
		for _, row := range s.localSSDs {
			assert.True(t, slices.ContainsFunc(s.types, func(m Machine) bool { return m.CPUs > least && m.CPUs <= row.maxCPUs }),
				"%s: from %d to %d vCPUs", s.prefix, least, row.maxCPUs)
			least = row.maxCPUs
		}
	}
}

func TestCatalogue(t *testing.T) {
	assert.Greater(t, len(MachineTypes()), 150)
	for _, name := range MachineTypes() {
		m, ok := Lookup(name)
		require.True(t, ok)
		assert.Equal(t, name, m.Type)
		assert.Equal(t, m.GPUs > 0, m.GPUType != "", name)
		assert.NotEmpty(t, m.BootDisks(), name)
	}
	for _, m := range catalogue {
		assert.Positive(t, m.CPUs, m.Type)
		assert.Positive(t, m.MemoryBytes, m.Type)
		s, known := m.Series()
		require.True(t, known, m.Type)
		assert.True(t, strings.HasPrefix(m.Type, s.prefix+"-"), m.Type)
	}
	_, ok := Lookup("e2-micro")
	assert.False(t, ok, "shared-core types are left out")
}

func TestAttachableGPUs(t *testing.T) {
	for _, c := range []struct {
		machine, gpuType string
		counts           []int
	}{
		{"n1-standard-8", "nvidia-tesla-v100", []int{1, 2, 4, 8}},
		{"n1-standard-32", "nvidia-tesla-v100", []int{4, 8}},
		{"n1-highmem-96", "nvidia-tesla-v100", []int{8}},
		{"n1-highmem-96", "nvidia-tesla-t4", []int{4}},
		{"n1-standard-8", "nvidia-tesla-a100", nil},
		{"n2-standard-8", "nvidia-tesla-t4", nil},
		{"a2-highgpu-1g", "nvidia-tesla-a100", nil},
	} {
		m, ok := Lookup(c.machine)
		require.True(t, ok)
		assert.Equal(t, c.counts, m.AttachableCounts(c.gpuType), "%s on %s", c.gpuType, c.machine)
	}
}

func TestSeries(t *testing.T) {
	for _, c := range []struct {
		machine                string
		spot, compact          bool
		needsGVNIC, takesGVNIC bool
		bundledSSDs            int
		bootDisks              []string
		cpuQuota               string
	}{
		{"a2-highgpu-8g", true, true, false, true, 0, persistent, "A2_CPUS"},
		{"a2-ultragpu-4g", true, true, false, true, 4, persistent, "A2_CPUS"},
		{"a3-highgpu-8g", true, true, true, true, 16, third, "CPUS"},
		{"a3-megagpu-8g", true, true, true, true, 16, third, "CPUS"},
		{"a3-ultragpu-8g", true, true, true, true, 32, hyperdisk, "CPUS"},
		{"a4-highgpu-8g", true, true, true, true, 32, hyperdisk, "CPUS_PER_VM_FAMILY (vm_family A4)"},
		{"c2-standard-30", true, true, false, true, 0, persistent, "C2_CPUS"},
		{"c3-standard-44", true, true, true, true, 0, third, "C3_CPUS"},
		{"c4-standard-32", true, true, true, true, 0, hyperdisk, "CPUS_PER_VM_FAMILY (vm_family C4)"},
		{"c4d-highmem-384", true, true, true, true, 0, hyperdisk, "CPUS_PER_VM_FAMILY (vm_family C4D)"},
		{"e2-standard-4", true, false, false, true, 0, persistent, "CPUS"},
		{"g2-standard-8", true, true, false, true, 0, []string{PDBalanced, pdSSD}, "CPUS"},
		{"g4-standard-48", true, false, true, true, 0, hyperdisk, "CPUS_PER_VM_FAMILY (vm_family G4)"},
		{"m1-ultramem-80", true, false, false, false, 0, append(persistent, hyperdiskBalanced), "M1_CPUS"},
		{"m2-ultramem-416", false, false, false, false, 0, append(persistent, hyperdiskBalanced), "M2_CPUS"},
		{"m3-ultramem-32", false, false, true, true, 0, third, "M3_CPUS"},
		{"m4-ultramem-224", true, false, true, true, 0, hyperdisk, "CPUS_PER_VM_FAMILY (vm_family M4)"},
		{"n1-standard-8", true, false, false, true, 0, persistent, "CPUS"},
		{"n2-highmem-32", true, true, false, true, 0, persistent, "N2_CPUS"},
		{"n4-standard-8", true, false, true, true, 0, hyperdisk, "CPUS_PER_VM_FAMILY (vm_family N4)"},
	} {
		m, ok := Lookup(c.machine)
		require.True(t, ok, c.machine)
		assert.Equal(t, c.spot, m.HasSpot(), c.machine)
		assert.Equal(t, c.compact, m.TakesCompactPlacement(), c.machine)
		assert.Equal(t, c.needsGVNIC, m.NeedsGVNIC(), c.machine)
		assert.Equal(t, c.takesGVNIC, m.TakesGVNIC(), c.machine)
		assert.Equal(t, c.bundledSSDs, m.BundledLocalSSDs(), c.machine)
		assert.Equal(t, c.bootDisks, m.BootDisks(), c.machine)
		assert.Equal(t, c.cpuQuota, m.CPUQuota(false), c.machine)
	}
	unknown := Machine{Type: "x9-standard-8", CPUs: 8}
	assert.Empty(t, unknown.BootDisks())
	assert.True(t, unknown.HasSpot() && unknown.TakesCompactPlacement() && unknown.TakesGVNIC())
}

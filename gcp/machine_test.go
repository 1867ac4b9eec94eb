package gcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLocalSSDs(t *testing.T) {
	for _, c := range []struct {
		machine string
		want    []int
	}{
		{"n1-standard-1", []int{1, 2, 3, 4, 5, 6, 7, 8, 16, 24}},
		{"n2-highmem-32", []int{4, 8, 16, 24}}, {"a3-highgpu-8g", []int{16}},
		{"a3-megagpu-8g", []int{16}}, {"a3-ultragpu-8g", []int{32}}, {"m1-ultramem-80", nil},
		{"m1-ultramem-160", nil}, {"e2-standard-8", nil},
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
	persistent := []string{PDBalanced, pdSSD, pdStandard}
	third := []string{PDBalanced, pdSSD, hyperdiskBalanced}
	hyperdisk := []string{hyperdiskBalanced}
	for _, c := range []struct {
		machine                string
		spot, compact          bool
		needsGVNIC, takesGVNIC bool
		bundledSSDs            int
		bootDisks              []string
		cpuQuota               string
	}{
		{"a2-highgpu-8g", true, true, false, true, 0, persistent, "A2_CPUS"},
		{"a3-highgpu-8g", true, true, true, true, 16, third, "CPUS"},
		{"a3-ultragpu-8g", true, true, true, true, 32, hyperdisk, "CPUS"},
		{"c4-standard-32", true, true, true, true, 0, hyperdisk, "CPUS_PER_VM_FAMILY (vm_family C4)"},
		{"m1-ultramem-80", true, false, false, false, 0, append(persistent, hyperdiskBalanced), "M1_CPUS"},
		{"m2-ultramem-416", false, false, false, false, 0, append(persistent, hyperdiskBalanced), "M2_CPUS"},
		{"n1-standard-8", true, false, false, true, 0, persistent, "CPUS"},
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

func TestWritableOnCOS(t *testing.T) {
	for _, directory := range []string{"/var/lib/persia", "/home/persia", "/mnt/disks/ssd0", "/mnt/stateful_partition/a", "/tmp/a"} {
		assert.True(t, WritableOnCOS(directory), directory)
	}
	for _, directory := range []string{"/mnt/data", "/mnt/diskspace", "/data", "/opt/persia", "/variable"} {
		assert.False(t, WritableOnCOS(directory), directory)
	}
}

func TestSystemDirectory(t *testing.T) {
	for directory, want := range map[string]string{
		"/etc": "/etc", "/etc/kubernetes": "/etc", "/proc": "/proc", "/var/lib/kubelet/pods": "/var/lib/kubelet",
		"/var": "/var/run", "/var/lib": "/var/lib/cni", "/run": "/run/containerd",
		"/var/lib/persia": "", "/mnt/data": "", "/home": "", "/etcetera": "",
	} {
		assert.Equal(t, want, SystemDirectory(directory), directory)
	}
}

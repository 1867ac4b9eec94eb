package gcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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

package gcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWritableOnCOS(t *testing.T) {
	for directory, want := range map[string]bool{
		"/var/lib/persia":           true,
		"/home/persia":              true,
		"/mnt/disks/ssd0":           true,
		"/mnt/stateful_partition/a": true,
		"/tmp/a":                    true,
		"/mnt/data":                 false,
		"/mnt/diskspace":            false,
		"/data":                     false,
		"/opt/persia":               false,
		"/variable":                 false,
	} {
		assert.Equal(t, want, WritableOnCOS(directory), directory)
	}
}

func TestSystemDirectory(t *testing.T) {
	for directory, want := range map[string]string{
		"/etc":                  "/etc",
		"/etc/kubernetes":       "/etc",
		"/proc":                 "/proc",
		"/var/lib/kubelet/pods": "/var/lib/kubelet",
		"/var":                  "/var/run",
		"/var/lib":              "/var/lib/cni",
		"/run":                  "/run/containerd",
		"/var/lib/persia":       "",
		"/mnt/data":             "",
		"/home":                 "",
		"/etcetera":             "",
	} {
		assert.Equal(t, want, SystemDirectory(directory), directory)
	}
}

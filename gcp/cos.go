package gcp

import (
	"path"
	"slices"
	"strings"
)

// COSWritable are the directories of Container-Optimized OS below which anything may be written. The root file system
// is read-only. What is below /mnt/disks, /run and /tmp is in memory, and is lost when the node restarts.
// (Container-Optimized OS, "Disks and file system overview".)
var COSWritable = []string{"/home", "/mnt/disks", "/mnt/stateful_partition", "/run", "/tmp", "/var"}

// WritableOnCOS reports whether a node with Container-Optimized OS can create a directory. The path is absolute.
func WritableOnCOS(directory string) bool {
	return slices.ContainsFunc(COSWritable, func(writable string) bool { return within(directory, writable) })
}

// systemDirectories belong to the operating system of a node, to its container
// runtime or to its kubelet, with Container-Optimized OS and with Ubuntu.
var systemDirectories = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr",
	"/run/containerd", "/run/systemd", "/var/run", "/var/log",
	"/var/lib/cni", "/var/lib/containerd", "/var/lib/docker", "/var/lib/google", "/var/lib/kubelet",
}

// SystemDirectory returns the directory of the node's own software that contains a directory or is below it, or "".
func SystemDirectory(directory string) string {
	for _, system := range systemDirectories {
		if within(directory, system) || within(system, directory) {
			return system
		}
	}
	return ""
}

// within reports whether an absolute path is a directory or lies below it.
func within(inner, outer string) bool {
	inner, outer = path.Clean(inner), path.Clean(outer)
	return inner == outer || strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
}

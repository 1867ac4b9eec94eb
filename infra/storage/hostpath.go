package storage

import (
	corev1 "k8s.io/api/core/v1"

	"persia/config"
)

// hostPath is a directory of the node that a pod happens to stand on: it is one
// volume only for a stack of one node.
func hostPath(source config.HostPath) corev1.PersistentVolumeSource {
	create := corev1.HostPathDirectoryOrCreate
	return corev1.PersistentVolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: source.Path, Type: &create},
	}
}

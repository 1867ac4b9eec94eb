// Package storage makes checkpoint volumes: a PersistentVolume that points at
// storage outside the cluster, and the claim that binds to it and to nothing
// else. Each kind of source has a file.
package storage

// Package storage makes checkpoint volumes: a PersistentVolume that points at
// storage outside the cluster, and the claim that binds to it and to nothing
// else. Each kind of source has a file.
//
// The objects in the cluster are only pointers, which go with the stack. The
// storage stays: what the stack has created is found again by its name, and taken
// over by the next update (see [Find]).
package storage

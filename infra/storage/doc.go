// Package storage creates checkpoint volumes: a PersistentVolume that points at storage outside the
// cluster, and the one claim that binds to it. Each kind of source has a file.
//
// The objects in the cluster are only pointers, which destroy deletes. It keeps the storage: the
// next update finds what the stack created by its name, and takes it over (see [Find]).
package storage

// Package capacity works out what GKE leaves of machines to pods, and whether a
// stack's pods fit its node pools.
//
// It is arithmetic: the machines are those of package gcp, and no cloud is asked, so
// that a stack that does not fit is found before anything is paid for.
package capacity

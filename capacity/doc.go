// Package capacity works out what GKE leaves of machines to pods, and whether a stack's pods fit its node pools.
//
// It computes with the machines of package gcp and calls no cloud API, so the program refuses a
// stack that does not fit before anything is paid for.
package capacity

// Package gcp is Google Cloud's vocabulary: the labels, taints, drivers, roles and
// enumerations of GKE, and the machine series of Compute Engine with what each of
// them takes. Every such name has its one home here, with the source of the fact.
//
// It is plain Go and asks no cloud.
package gcp

// Package gke plays what GKE does in the control plane of a cluster. It makes simulated nodes of the
// node pools, with the labels, taints and allocatable capacity of GKE's, and replaces, repairs and
// counts them. It installs GKE's storage drivers and kinds, and gives addresses to load balancers.
// Package autoscaler chooses the number of nodes of autoscaled pools.
package gke

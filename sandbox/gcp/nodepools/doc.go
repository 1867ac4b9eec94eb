// Package nodepools plays the node pools of GKE: it makes simulated nodes in a control plane,
// with the labels, taints and allocatable capacity of GKE's, and replaces, repairs and
// counts them. Package autoscaler chooses the number of nodes of autoscaled pools.
package nodepools

// Package gke creates a GKE cluster: its network, the identity of its nodes, the control plane, the node pools, and the
// Kubernetes provider that everything inside the cluster is registered with.
package gke

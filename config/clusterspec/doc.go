// Package clusterspec is what a stack file says of the GKE cluster and its network.
package clusterspec

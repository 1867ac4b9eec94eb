// Package clusterspec defines the GKE cluster and its network in a stack file.
package clusterspec

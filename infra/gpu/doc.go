// Package gpu defines what makes a node pool a GPU pool, and how its nodes get the NVIDIA driver:
// from GKE, or from an installer DaemonSet. The two exclude each other, so one setting determines
// both the inputs of a pool and whether there is a DaemonSet.
package gpu

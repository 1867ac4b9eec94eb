// Package gpu knows what makes a node pool a GPU pool, and how its nodes get the
// NVIDIA driver: from GKE, or from an installer DaemonSet. The two exclude each
// other, so one configured choice decides both what a pool asks of GKE and
// whether a DaemonSet is there.
package gpu

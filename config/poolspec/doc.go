// Package poolspec defines the machines in a stack file: node pools, machine types, and the
// NVIDIA driver of GPU nodes.
package poolspec

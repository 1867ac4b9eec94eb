// Package poolspec is what a stack file says of machines: node pools, the machine
// types that they have, and the NVIDIA driver of their GPUs.
package poolspec

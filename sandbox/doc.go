// Package sandbox brings a stack up on this machine with no cloud account: the unchanged program, run by the real
// Pulumi engine, against a real Kubernetes control plane with simulated nodes and a simulated Google Cloud.
//
// Each stack has its own control plane. The sandbox writes only to one folder, and listens only on loopback.
package sandbox

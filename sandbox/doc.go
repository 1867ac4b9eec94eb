// Package sandbox brings a stack up on this machine with no cloud account: the
// unchanged program, run by the real Pulumi engine, against a real Kubernetes
// control plane with simulated nodes and a simulated Google Cloud.
//
// Each stack has a control plane of its own. Everything it writes lies in one
// folder, and it listens on loopback only.
package sandbox

// Package gcp simulates Google Cloud for the Pulumi engine: a provider named gcp
// whose GKE cluster is the sandbox's control plane.
//
// Package google, below, answers like Google's APIs. Package terraform plans like
// the official provider 7.38 (terraform-provider-google-beta 5.42), so that a
// preview here is the preview there. Packages addon and nodepools play what GKE does in
// the control plane, and package autoscaler chooses the number of nodes of autoscaled
// pools.
//
// It simulates what the program uses and refuses everything else by name, so that a stack
// never comes up here with a resource that is not simulated.
package gcp

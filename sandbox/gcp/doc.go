// Package gcp simulates Google Cloud for the Pulumi engine: a provider named gcp
// whose GKE cluster is the sandbox's control plane.
//
// It plans changes with the code that the official provider 7.38 (terraform-provider-google-beta 5.42) plans with, the
// Terraform plugin SDK and the layer that pulumi-terraform-bridge puts around it, so that a preview here is the preview
// there. kinds.yaml says how plans become requests to package google, which answers like Google's APIs, and how
// the answers become Terraform's objects. Package gke plays what GKE does in the control plane, and package autoscaler
// chooses the number of nodes of autoscaled pools.
//
// The conversion of values follows the bridge's rules; the bridge's package of its own for
// these does not compile with the SDK that the program uses. The schema is the provider's, for
// the resources and fields that the program sets or Google answers:
//
//   - schema.json holds what it says of each field. The fields of
//     google_artifact_registry_repository_iam_member and google_project_service_identity were read
//     from the provider's source, the rest from the provider. Of the functions that suppress differences, a
//     plan here has the one for links alone, since no answer to the program needs the others.
//   - the field restriction describes what the provider refuses before it asks Google: unknown values of an
//     enumeration, malformed names, ranges, and times, and fields that exclude each other. It was found by giving each
//     field a value that cannot be right, and for names of buckets read from the provider's verify.ValidateGCSName.
//
// It simulates what the program uses and refuses everything else by name, so that a stack
// never comes up here with a resource that is not simulated.
package gcp

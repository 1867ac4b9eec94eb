// Package tfschema is the Terraform schema of pulumi-gcp 7.38
// (terraform-provider-google-beta 5.42) for the resources that the program uses.
//
// schema.json holds what it says of every field that the program can reach: its type,
// and whether it is optional, computed, forces a replacement, has a default, or has its
// differences suppressed. The functions that suppress them are not data, and are written
// in suppress.go after the provider.
//
// validation.json holds what the provider refuses before it asks Google: other values than
// an enumeration has, formats, and fields that exclude each other. It was found by giving
// each field of pulumi-gcp 7.38.0 a value that cannot be right, VALUE in the messages.
//
// schema-read.json holds the same of two resources that are not in that file, as it was
// read from the provider's source: iam_artifact_registry_repository.go with the fields
// that all members of policies have, and resource_google_project_service_identity.go.
package tfschema

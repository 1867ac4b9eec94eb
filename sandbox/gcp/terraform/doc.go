// Package terraform plans changes of Google Cloud's resources with the code that
// the official provider plans with: the Terraform plugin SDK and the layer that
// pulumi-terraform-bridge puts around it.
//
// schema.json holds what pulumi-gcp 7.38's Terraform schema says of every field
// that the program can reach: its type, and whether it is optional, computed,
// forces a replacement, has a default, or has its differences suppressed. The
// functions that suppress them are not data, and are written in suppress.go after
// terraform-provider-google-beta 5.42.
//
// schema-read.json holds the same of two resources that are not in that file, as it
// was read from the provider's source: iam_artifact_registry_repository.go with the
// fields that all members of policies have, and
// resource_google_project_service_identity.go, both of terraform-provider-google-beta.
//
// Two parts are the sandbox's own. The names of properties and the conversion of
// values follow the bridge's rules; the bridge's package of its own for these
// does not compile with the SDK that the program uses. And reading and writing go
// to a [Backend], which simulates Google's APIs.
package terraform

// Package terraform plans changes of Google Cloud's resources with the code that
// the official provider plans with: the Terraform plugin SDK and the layer that
// pulumi-terraform-bridge puts around it. It reads and writes them as that does: plans become
// requests to a simulation of Google's APIs, and answers Terraform's objects.
//
// The conversion of values follows the bridge's rules; the bridge's package of its
// own for these does not compile with the SDK that the program uses. The schema is pulumi-gcp 7.38's
// (terraform-provider-google-beta 5.42), for the resources that the program uses:
//
//   - schema.json holds what it says of every field that the program can reach. The functions that
//     suppress differences are not data, and are written in suppress.go after the provider.
//   - schema-read.json holds the same of two resources, as it was read from the provider's source:
//     iam_artifact_registry_repository.go with the fields that all members of policies have, and
//     resource_google_project_service_identity.go.
//   - validation.json holds what the provider refuses before it asks Google. It was found by giving
//     each field of pulumi-gcp 7.38.0 a value that cannot be right, VALUE in the messages.
package terraform

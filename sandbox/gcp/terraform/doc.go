// Package terraform plans changes of Google Cloud's resources with the code that
// the official provider plans with: the Terraform plugin SDK and the layer that
// pulumi-terraform-bridge puts around it.
//
// The schema is the official provider's (package tfschema). Two parts are the sandbox's
// own. The conversion of values follows the bridge's rules; the bridge's package of its
// own for these does not compile with the SDK that the program uses. And reading and
// writing go to a simulation of Google's APIs (package restapi).
package terraform

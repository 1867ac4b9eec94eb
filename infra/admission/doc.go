// Package admission keeps out of a stack's namespaces what no part of the stack needs: pods that
// take over their node, images that the stack file does not name, and the deletion of checkpoint
// claims by hand. The API server itself enforces the policies; there is no webhook to fail.
package admission

// Package preflight finds out what is missing for `pulumi up` of a stack, before it
// runs: programs, plugins, logins, APIs and quotas.
//
// It asks the gcloud and pulumi commands of whoever calls it, and not Google Cloud
// or Pulumi itself: the logins, the projects and the proxies that these are set up
// with are what `up` works with, and no SDK of Google's is needed. One difference
// stays. The program's provider takes the application-default credentials, while
// gcloud answers for its own account: where the two are not the same identity, what
// is said here holds for gcloud's.
//
// What cannot be checked, for want of the network, a program or a right, is
// reported as unchecked and is no failure.
package preflight

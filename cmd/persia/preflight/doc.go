// Package preflight checks whether `pulumi up` of a stack can succeed, before it
// runs: programs, plugins, logins, APIs and quotas.
//
// It runs the user's gcloud and pulumi commands instead of calling Google Cloud or Pulumi itself.
// `up` uses the same logins, projects and proxies, and preflight needs no Google SDK. One difference
// remains: the program's provider uses the application default credentials, while gcloud uses its
// own account. If the two are different identities, the results hold for gcloud's.
//
// A check that lacks the network, a program or a permission reports unchecked, which is no failure.
package preflight

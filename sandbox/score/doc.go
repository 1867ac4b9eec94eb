// Package score has the tests that hold the Kubernetes objects of the repository's
// stacks against kube-score.
package score

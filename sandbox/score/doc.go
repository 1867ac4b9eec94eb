// Package score tests the Kubernetes objects of the repository's stacks with kube-score.
package score

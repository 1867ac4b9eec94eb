// Package kube registers Kubernetes objects with Pulumi.
//
// The program plans every object as a plain value of Kubernetes' own types
// (k8s.io/api), which needs no Pulumi to build or to test. Here, and only here,
// such a value becomes a typed resource of the Pulumi Kubernetes SDK.
package kube

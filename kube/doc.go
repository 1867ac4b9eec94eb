// Package kube registers Kubernetes objects with Pulumi.
//
// The program plans every object as a plain value of Kubernetes' own types
// (k8s.io/api), which needs no Pulumi to build or to test, and holds whatever a
// user may write in a pod. Here, and only here, such a value becomes a Pulumi
// resource: the very one that the constructors of the Pulumi Kubernetes SDK
// would register.
package kube

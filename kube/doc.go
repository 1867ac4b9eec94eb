// Package kube registers Kubernetes objects with Pulumi.
//
// The program builds every object as a plain value of Kubernetes' own types (k8s.io/api). Such a value needs no Pulumi
// to build or test, and can hold everything that a user may write in a pod. Only this package turns such values into
// Pulumi resources: the same resources that the constructors of the Pulumi Kubernetes SDK would register.
package kube

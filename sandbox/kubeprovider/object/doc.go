// Package object turns the properties of a Pulumi resource into a Kubernetes object and
// back, without losing which of them are secret, and brings two ways to say the same into
// one form.
package object

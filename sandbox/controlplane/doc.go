// Package controlplane runs a Kubernetes control plane on this machine: etcd,
// the API server, the controller manager and the scheduler are the real ones,
// and kwok stands in for the kubelets of the nodes annotated
// kwok.x-k8s.io/node=fake. All of them listen on the loopback interface only.
//
// kwokctl writes the certificates and starts the processes. It does so without
// asking whose process a recorded id has become, whether a creation was
// interrupted, or whether a component survives its start; this package does.
package controlplane

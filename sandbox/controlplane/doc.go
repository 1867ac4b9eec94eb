// Package controlplane runs a Kubernetes control plane on this machine: etcd, the API server, the controller manager
// and the scheduler are the real ones, and kwok plays the kubelets of the nodes annotated kwok.x-k8s.io/node=fake. All
// of them listen on the loopback interface only.
//
// kwokctl writes the certificates and starts the processes. This package adds what kwokctl does not check: which
// process a recorded id belongs to, whether a creation was interrupted, and whether a component survives its start.
package controlplane

// Package node runs a real Kubernetes node on this machine: a kubelet, containerd,
// kube-proxy, CoreDNS and a controller that enforces network policies.
//
// The node is to the sandbox what a machine is to GKE. [Run] waits for a Node object
// with the annotation [Annotation], which the simulated Google Cloud makes for a pool
// that is to be real, and runs a machine for it until the object is gone; kwok plays
// all other nodes.
//
// A machine is a set of Linux namespaces, of processes, mounts, the network, names and
// System V IPC, with a process of this package as its first, and control groups of its
// own. Its root directory has the programs of the host in it to read, and everything it
// writes lies in the node's folder. It speaks with the host alone, over a link that no
// other interface forwards to, and with the control plane through a relay. So all of it
// is gone when its first process is, however that ended.
package node

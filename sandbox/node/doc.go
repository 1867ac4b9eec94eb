// Package node runs a real Kubernetes node on this machine: a kubelet, containerd, kube-proxy, CoreDNS
// and a controller that enforces network policies. It runs on Linux only.
//
// A node is to the sandbox what a machine is to GKE. [Run] waits for a Node object with the annotation [Annotation],
// which the simulated Google Cloud creates for a pool that is to be real, and runs a machine for it until the object is
// gone; kwok plays all other nodes.
//
// A machine is a container: runc sets up its namespaces, mounts, and control groups from an OCI runtime specification,
// in version 1 or 2 of control groups. [Boot] is its first process. The machine reads the host's programs, writes to
// the node's folder only, and reaches nothing but the host, over a link, and the API server, through a relay.
//
// When the process that runs [Run] ends, even by SIGKILL, the machine's first process ends too, and the kernel kills
// all others. What runc and the kernel keep of a killed machine, [CleanUp] removes; [Run] calls it before each start.
package node

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

import (
	"path/filepath"

	"persia/sandbox/toolchain"
)

// Annotation is on the Node object that the real node is run for. Its value is "real".
const Annotation = "sandbox.persia.com/node"

// Options are the programs and folders of a node, as absolute paths.
type Options struct {
	// Dir is the folder that the node writes to, in a folder named by the UID of its Node object.
	Dir string
	// Disks is the folder that pods see as /mnt/disks, by volumes of the kind hostPath. It outlives the node.
	Disks string
	// Images is the folder of the archives, *.tar, with the images of the pods. Nothing is pulled.
	Images string
	// Kubeconfig is the administrator's.
	Kubeconfig string
	Tools      toolchain.Tools
	// Buckets is the address on the loopback interface of a server of buckets, or empty. The Tools then have gcsfuse.
	Buckets string
}

// machine is the machine of a node.
type machine struct {
	// Options have the folder of this machine alone.
	Options
	node string
}

// root is the machine's root directory. path returns the host's path of a file of the machine.
func (o Options) root() string { return filepath.Join(o.Dir, "root") }

func (o Options) path(elements ...string) string {
	return filepath.Join(append([]string{o.root()}, elements...)...)
}

// The folders of the machine that are of this package, as the machine names them.
const (
	configDir   = "/var/lib/node"
	programsDir = "/opt/programs"
	imagesDir   = "/opt/images"
	disksDir    = "/mnt/disks"
	logDir      = "/var/log"
)

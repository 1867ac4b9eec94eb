package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"persia/sandbox/toolchain"
)

// Annotation is on the Node objects that a real node is run for. Its value is "real".
const Annotation = "sandbox.persia.com/node"

// Options say what a node is made of, in absolute paths.
type Options struct {
	// Dir is the folder that the node writes to.
	Dir string
	// Disks is the folder that pods of the node see as /mnt/disks, by volumes of the
	// kind hostPath. It outlives the node.
	Disks string
	// Images is the folder of the archives, *.tar, with the images of the pods, or "".
	// Nothing is pulled.
	Images string
	// Kubeconfig is the administrator's.
	Kubeconfig string
	// PKI is the folder of ca.crt and ca.key, which certificates of clients are signed
	// with.
	PKI   string
	Tools toolchain.Tools
}

// Write writes the options to a file, for [Read].
func (o Options) Write(path string) error {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// Read reads options from a file.
func Read(path string) (Options, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Options{}, err
	}
	var o Options
	if err := json.Unmarshal(text, &o); err != nil {
		return Options{}, fmt.Errorf("%s: %w", path, err)
	}
	return o, nil
}

// Tunnel is the socket at which a node in dir connects to its pods, by package tunnel.
func Tunnel(dir string) string { return filepath.Join(dir, "tunnel") }

// root is the machine's root directory, and path a path in it by which the host finds
// what the machine calls by the elements alone.
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

package controlplane

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"persia/kube"
	"persia/sandbox/files"
	"persia/sandbox/toolchain"
)

// AdvertisedAddress and AdvertisedPort are where pods of a real node find the API server. The address
// is reserved for documentation (RFC 5737): the API server listens on loopback alone, and a real node
// relays to it. Network policies name the port, which GKE's control planes use.
const (
	AdvertisedAddress = "192.0.2.1"
	AdvertisedPort    = 443
)

// kubectlStub answers kwokctl, which asks kubectl whether the API server is up, and would otherwise
// download kubectl. This package waits by itself.
const kubectlStub = `#!/bin/sh
printf ok
`

// configs are templates, but for stages.yaml, which has kwok's own templates.
//
//go:embed kwokctl.yaml audit-policy.yaml egress.yaml stages.yaml
var configs embed.FS

// writeConfig writes what kwokctl reads to create the cluster.
func (c *Cluster) writeConfig() error {
	ports, err := freePorts(6)
	if err != nil {
		return err
	}
	// kwokctl leaves the administrator's key readable to all who get there.
	for _, dir := range []string{c.kwokDir(), c.stubs()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{"kwokctl.yaml", "audit-policy.yaml", "egress.yaml", "stages.yaml"} {
		content, err := c.config(name, ports)
		if err != nil {
			return err
		}
		if err := files.Write(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return files.Write(filepath.Join(c.stubs(), "kubectl"), []byte(kubectlStub), 0o700)
}

// templated holds the values that the templates insert.
type templated struct {
	folder
	Ports   []int
	Tools   toolchain.Tools
	Address string
}

// File returns the path of a file of the cluster.
func (t templated) File(name string) string { return filepath.Join(t.dir, name) }

func (c *Cluster) config(name string, ports []int) (string, error) {
	text, err := configs.ReadFile(name)
	if err != nil || name == "stages.yaml" {
		return string(text), err
	}
	return kube.Fill(string(text), templated{c.folder, ports, c.tools, AdvertisedAddress}), nil
}

// freePorts returns n different ports that are free on loopback. They are below the range for outgoing connections, and
// chosen at random, so that they are still free when a stopped cluster starts again.
func freePorts(n int) ([]int, error) {
	const first, count = 20000, 10000
	var ports []int
	for _, i := range rand.Perm(count) {
		port := first + i
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		_ = listener.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("fewer than %d free ports between %d and %d", n, first, first+count-1)
}

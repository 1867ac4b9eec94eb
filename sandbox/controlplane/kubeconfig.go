package controlplane

import (
	"fmt"

	"github.com/google/renameio/v2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// RESTConfig returns the administrator's access to a cluster, also before its creation is complete. Requests
// are not rate limited: the API server is on this machine and protects itself.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kwokctlKubeconfig())
	if err == nil {
		// client-go keeps reading certificate files again, and complains of each
		// that is gone when the control plane is.
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		return nil, fmt.Errorf("control plane %s: %w", c.name, err)
	}
	config.CAFile, config.CertFile, config.KeyFile = "", "", ""
	config.QPS = -1
	return config, nil
}

// writeKubeconfig writes kwokctl's kubeconfig with the certificates in it, so
// that it is one file to copy and to protect.
func (c *Cluster) writeKubeconfig() error {
	source, err := clientcmd.LoadFromFile(c.kwokctlKubeconfig())
	if err != nil {
		return err
	}
	if err := clientcmd.ResolveLocalPaths(source); err != nil {
		return err
	}
	if err := clientcmdapi.FlattenConfig(source); err != nil {
		return err
	}
	content, err := clientcmd.Write(*source)
	if err != nil {
		return err
	}
	// Written at once or not at all: its existence marks a complete creation.
	return renameio.WriteFile(c.Kubeconfig(), content, 0o600)
}

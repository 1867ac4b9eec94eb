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
	context, ok := source.Contexts[source.CurrentContext]
	if !ok {
		return fmt.Errorf("%s: no context %q", c.kwokctlKubeconfig(), source.CurrentContext)
	}
	// kwokctl's names carry a prefix.
	config := clientcmdapi.NewConfig()
	config.Clusters[c.name] = source.Clusters[context.Cluster]
	config.AuthInfos[c.name] = source.AuthInfos[context.AuthInfo]
	config.Contexts[c.name] = &clientcmdapi.Context{Cluster: c.name, AuthInfo: c.name}
	config.CurrentContext = c.name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	// Written at once or not at all: its existence marks a complete creation.
	return renameio.WriteFile(c.Kubeconfig(), content, 0o600)
}

package node

import (
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// writeCredentials writes the kubeconfigs of the machine's programs. The kubelet and kube-proxy act as who
// they are on any node, so that the API server grants them no more. CoreDNS and the network policies'
// controller are the administrator, and run on the administrator's machine.
func (o Options) writeCredentials(node string) error {
	for name, as := range map[string]struct {
		user   string
		groups []string
	}{
		"admin":      {},
		"kubelet":    {"system:node:" + node, []string{"system:nodes"}},
		"kube-proxy": {"system:kube-proxy", nil},
	} {
		config, err := clientcmd.LoadFromFile(o.Kubeconfig)
		if err != nil {
			return err
		}
		context := config.Contexts[config.CurrentContext]
		administrator := config.AuthInfos[context.AuthInfo]
		administrator.Impersonate, administrator.ImpersonateGroups = as.user, as.groups
		if err := clientcmd.WriteToFile(*config, o.path(configDir, name+".kubeconfig")); err != nil {
			return err
		}
		// The authority of the API server's own certificates, with which it comes to the kubelet, too.
		authority := config.Clusters[context.Cluster].CertificateAuthorityData
		if err := os.WriteFile(o.path(configDir, "ca.crt"), authority, 0o644); err != nil {
			return err
		}
	}
	return nil
}

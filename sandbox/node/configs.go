package node

import (
	"embed"
	"os"

	"k8s.io/client-go/tools/clientcmd"

	"persia/kube"
	"persia/sandbox/files"
)

const (
	// pauseImage is the image of the first container of every pod.
	pauseImage   = "registry.k8s.io/pause:3.10"
	pauseArchive = "pause.tar"
)

//go:embed configs
var configs embed.FS

// writeConfigs writes what the machine's programs read, but for their credentials.
func (m machine) writeConfigs() error {
	values := struct{ Dir, Plugins, Pause, DNS, Pods string }{
		configDir, cniPlugins, pauseImage, dnsAddress, linkOf(m.Dir).pods.String(),
	}
	for _, name := range []string{"containerd.toml", "Corefile", "cni/pods.conflist", "kubelet.yaml", "kube-proxy.yaml"} {
		template, err := configs.ReadFile("configs/" + name)
		if err != nil {
			return err
		}
		text := []byte(kube.Fill(string(template), values))
		if err := files.Write(m.path(configDir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

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

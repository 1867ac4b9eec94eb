package node

import (
	"bytes"
	"embed"
	"os"
	"path/filepath"
	"text/template"
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
		config, err := template.ParseFS(configs, "configs/"+name)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := config.Execute(&text, values); err != nil {
			return err
		}
		path := m.path(configDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

package node

import (
	"encoding/json"
	"os"
	"path/filepath"
)

type object = map[string]any

// writeConfigs writes what the machine's programs read, but for their credentials.
func (m machine) writeConfigs() error {
	for name, content := range map[string]any{
		"containerd.toml":   containerdConfig,
		"Corefile":          corefile,
		"cni/pods.conflist": podNetwork(linkOf(m.Dir).pods.String()),
		"kubelet.json":      kubeletConfig(),
		"kube-proxy.json":   kubeProxyConfig(linkOf(m.Dir).pods.String()),
	} {
		text, literal := content.(string)
		if !literal {
			bytes, err := json.MarshalIndent(content, "", "  ")
			if err != nil {
				return err
			}
			text = string(bytes)
		}
		path := m.path(configDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// containerdConfig has the machine's paths, most of them containerd's defaults.
//
// A machine may lack CAP_SYS_RESOURCE, as in some virtual ones: then runc cannot lower
// the OOM score of a pod's first container, and restrict_oom_score_adj leaves it.
const containerdConfig = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "` + cniPlugins + `"
    conf_dir = "` + configDir + `/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`

const containerdSocket = "unix:///run/containerd/containerd.sock"

// podNetwork gives each pod a link of its own to the machine, as GKE's nodes do without Dataplane V2: so what goes from
// pod to pod is forwarded, and the network policies see it.
func podNetwork(subnet string) any {
	return object{
		"cniVersion": "0.4.0",
		"name":       "pods",
		"plugins": []object{{
			"type":   "ptp",
			"ipMasq": false,
			"ipam": object{
				"type":    "host-local",
				"dataDir": "/run/cni/networks",
				"ranges":  [][]object{{{"subnet": subnet}}},
				"routes":  []object{{"dst": "0.0.0.0/0"}},
			},
		}},
	}
}

// corefile answers for the names of the cluster, and for no others: there is no way out.
const corefile = `.:53 {
    bind ` + dnsAddress + `
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig ` + configDir + `/admin.kubeconfig
        ttl 5
    }
}
`

func kubeletConfig() any {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": configDir + "/ca.crt"},
		},
		"authorization":            object{"mode": "Webhook"},
		"cgroupDriver":             "cgroupfs",
		"clusterDNS":               []string{dnsAddress},
		"clusterDomain":            "cluster.local",
		"containerRuntimeEndpoint": containerdSocket,
		// Names outside of the cluster do not resolve, whatever the host's resolver is.
		"resolvConf":  "",
		"failSwapOn":  false,
		"oomScoreAdj": 0,
		// Some of the machines that run the tests have version 1.
		"failCgroupV1": false,
		// An image that is removed could not be had again.
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
		"evictionHard":                object{"memory.available": "100Mi", "nodefs.available": "256Mi"},
		"serverTLSBootstrap":          false,
	}
}

// kubeProxyConfig leaves the host's limits of tracked connections alone, which the machine may not set.
func kubeProxyConfig(pods string) any {
	return object{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"mode":             "iptables",
		"clientConnection": object{"kubeconfig": configDir + "/kube-proxy.kubeconfig"},
		"clusterCIDR":      pods,
		"iptables":         object{"localhostNodePorts": false},
		"conntrack": object{
			"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
		},
	}
}

package agent

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"persia/sandbox/toolchain"
)

// program is the local program of a container image.
type program struct {
	// binary is the absolute path of the executable.
	binary string
	// args come before the container's own. They may refer to the variables $(KUBECONFIG), a kubeconfig
	// of the pod's service account, $(POD_NAME), and $(POD_NAMESPACE).
	args []string
	// serves says that the program is one of Kubernetes' controllers with webhooks: its settings say
	// where it listens, and its pod is ready when its readiness probe succeeds.
	serves bool
}

// programs returns the programs that run outside of the cluster, by their image repositories.
func programs(tools toolchain.Tools) map[string]program {
	// Stacks without jobs on pools with queued provisioning need no Python.
	python, err := exec.LookPath("python3")
	if err != nil {
		python = "python3"
	}
	return map[string]program{
		// Nothing asks its health and metrics server here, which by default listens on every interface.
		"natsio/nats-operator": {binary: tools.Path("nats-operator"),
			args: []string{"--debug-kube-config-path=$(KUBECONFIG)", "--debug-pod-name=$(POD_NAME)", "--listen-addr=127.0.0.1:0"}},
		"registry.k8s.io/jobset/jobset": {binary: tools.Path("jobset-controller"), serves: true,
			args: []string{"--kubeconfig=$(KUBECONFIG)", "--namespace=$(POD_NAMESPACE)"}},
		"registry.k8s.io/kueue/kueue": {binary: tools.Path("kueue"), serves: true, args: []string{"--kubeconfig=$(KUBECONFIG)"}},
		// A script of a ConfigMap.
		"python": {binary: python},
	}
}

const (
	// healthPort and webhookPort are the ports of a controller's container.
	healthPort, webhookPort = 8081, 10250
	// certificateFolder is where a controller finds its certificate if its settings do not say.
	certificateFolder = "/tmp/k8s-webhook-server/serving-certs"
)

// listenHere changes the addresses and folders in a controller's settings to this machine's.
func listenHere(settings []byte, at host) ([]byte, error) {
	all := map[string]any{}
	if err := yaml.Unmarshal(settings, &all); err != nil {
		return nil, err
	}
	folder := certificateFolder
	if webhook, ok := all["webhook"].(map[string]any); ok && webhook["certDir"] != nil {
		folder = fmt.Sprint(webhook["certDir"])
	}
	all["health"] = map[string]any{"healthProbeBindAddress": fmt.Sprintf("127.0.0.1:%d", at.ports[healthPort])}
	all["webhook"] = map[string]any{"host": "127.0.0.1", "port": at.ports[webhookPort], "certDir": at.mounts[folder]}
	return yaml.Marshal(all)
}

// arguments returns the program's own arguments followed by the container's.
func (p program) arguments(pod *corev1.Pod, container corev1.Container, env []string, at host) []string {
	variables := []string{"KUBECONFIG=" + at.kubeconfig, "POD_NAME=" + pod.Name, "POD_NAMESPACE=" + pod.Namespace}
	var args []string
	for _, arg := range p.args {
		args = append(args, expand(arg, variables))
	}
	own := append(append([]string{}, container.Command...), container.Args...)
	// Where the image has no entrypoint, the first names the executable.
	if len(own) > 0 && !strings.HasPrefix(own[0], "-") {
		own = own[1:]
	}
	for _, arg := range own {
		args = append(args, at.local(expand(arg, env)))
	}
	return args
}

// host is this machine as a container's program sees it.
type host struct {
	kubeconfig string
	// ports are the ports of loopback for the container's.
	ports map[int32]int
	// mounts are the folders for the paths at which the container has ConfigMaps and Secrets.
	mounts map[string]string
}

// local replaces the paths of ConfigMaps in an argument.
func (h host) local(arg string) string {
	for path, folder := range h.mounts {
		arg = strings.ReplaceAll(arg, path+"/", folder+"/")
	}
	return arg
}

var artifactRegistry = regexp.MustCompile(`^[a-z0-9-]+-docker\.pkg\.dev$`)

// repository returns the repository of an image reference without its tag and digest, and
// without the registry if that is Docker Hub, the default. An image in a repository of Artifact
// Registry is taken for the one of Docker Hub that it caches.
func repository(image string) string {
	reference, err := name.ParseReference(image)
	if err != nil {
		return image
	}
	registry, path := reference.Context().RegistryStr(), reference.Context().RepositoryStr()
	switch {
	case artifactRegistry.MatchString(registry):
		if parts := strings.SplitN(path, "/", 3); len(parts) == 3 { // project, repository, image
			path = parts[2]
		}
	case registry != name.DefaultRegistry:
		return registry + "/" + path
	}
	return strings.TrimPrefix(path, "library/")
}

package agent

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Program is the local program of a container image.
type Program struct {
	// Binary is the absolute path of the executable.
	Binary string
	// Args come before the container's own. They may refer to the variables
	// $(KUBECONFIG), a kubeconfig of the pod's service account, $(POD_NAME), $(POD_NAMESPACE),
	// and $(DIR), a folder of the container.
	Args []string
	// Serves says that the program listens on ports of loopback for the ports of its container,
	// in arguments $(PORT_N) for N. Its pod is ready when its readiness probe succeeds.
	Serves bool
	// Adapt, if it is not nil, changes a mounted ConfigMap's file to what holds on this machine.
	Adapt func(file []byte, at host) ([]byte, error)
}

// NATSOperatorRepository is the image repository of the NATS operator.
const NATSOperatorRepository = "natsio/nats-operator"

// NATSOperator returns the NATS operator, run from outside the cluster. Its health
// and metrics server, which nothing asks here, gets any free port on loopback;
// by default it listens on every interface.
func NATSOperator(binary string) Program {
	return Program{
		Binary: binary,
		Args: []string{
			"--debug-kube-config-path=$(KUBECONFIG)",
			"--debug-pod-name=$(POD_NAME)",
			"--listen-addr=127.0.0.1:0",
		},
	}
}

// JobSetRepository is the image repository of the JobSet controller.
const JobSetRepository = "registry.k8s.io/jobset/jobset"

// JobSet returns the JobSet controller, run from outside the cluster.
func JobSet(binary string) Program {
	return Program{
		Binary: binary,
		Args: []string{
			"--kubeconfig=$(KUBECONFIG)", "--namespace=$(POD_NAMESPACE)", "--certificates=$(DIR)/certificate",
			"--port=$(PORT_10250)", "--health-port=$(PORT_8081)",
		},
		Serves: true,
	}
}

// KueueRepository is the image repository of Kueue.
const KueueRepository = "registry.k8s.io/kueue/kueue"

// Kueue is Kueue, run from outside the cluster.
func Kueue(binary string) Program {
	return Program{Binary: binary, Args: []string{"--kubeconfig=$(KUBECONFIG)"}, Serves: true, Adapt: adaptKueue}
}

// PythonRepository is the image repository of Python.
const PythonRepository = "python"

// Python runs a script of a ConfigMap.
func Python(binary string) Program { return Program{Binary: binary} }

// adaptKueue changes the addresses and folders of Kueue's configuration, for which it has no
// arguments.
func adaptKueue(file []byte, at host) ([]byte, error) {
	var config struct {
		Health struct {
			HealthProbeBindAddress string `json:"healthProbeBindAddress"`
		} `json:"health"`
		Webhook struct {
			Port    int32  `json:"port"`
			CertDir string `json:"certDir"`
		} `json:"webhook"`
	}
	all := map[string]any{}
	if err := errors.Join(yaml.Unmarshal(file, &config), yaml.Unmarshal(file, &all)); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(config.Health.HealthProbeBindAddress)
	if err != nil {
		return nil, err
	}
	health, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return nil, err
	}
	all["health"] = map[string]any{"healthProbeBindAddress": fmt.Sprintf("127.0.0.1:%d", at.ports[int32(health)])}
	all["webhook"] = map[string]any{
		"host": "127.0.0.1", "port": at.ports[config.Webhook.Port], "certDir": at.mounts[config.Webhook.CertDir],
	}
	return yaml.Marshal(all)
}

// arguments returns the program's own arguments followed by the container's.
func (p Program) arguments(pod *corev1.Pod, container corev1.Container, env []string, at host) []string {
	var args []string
	for _, arg := range p.Args {
		args = append(args, expand(arg, at.variables(pod)))
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
	dir, kubeconfig string
	// ports are the ports of loopback for the container's.
	ports map[int32]int
	// mounts are the folders for the paths at which the container has ConfigMaps and Secrets.
	mounts map[string]string
}

func (h host) variables(pod *corev1.Pod) []string {
	variables := []string{"KUBECONFIG=" + h.kubeconfig, "POD_NAME=" + pod.Name, "POD_NAMESPACE=" + pod.Namespace, "DIR=" + h.dir}
	for of, port := range h.ports {
		variables = append(variables, fmt.Sprintf("PORT_%d=%d", of, port))
	}
	return variables
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

// logName returns the file that keeps the output of a container's program.
func logName(pod *corev1.Pod, container string) string {
	return fmt.Sprintf("%s_%s_%s.log", pod.Namespace, pod.Name, container)
}

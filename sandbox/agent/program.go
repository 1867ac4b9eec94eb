package agent

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Program is what is run for a container image.
type Program struct {
	// Binary is the absolute path of the executable.
	Binary string
	// Args come before the container's own. They may refer to the variables
	// $(KUBECONFIG), a kubeconfig of the pod's service account, and $(POD_NAME).
	// One of them should hold $(KUBECONFIG): it is how a program left behind by
	// a killed agent is recognised.
	Args []string
}

// NATSOperatorRepository is the image repository of the NATS operator.
const NATSOperatorRepository = "natsio/nats-operator"

// NATSOperator is the NATS operator, run from outside the cluster. Its health
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

// arguments returns the program's own arguments followed by the container's.
func (p Program) arguments(pod *corev1.Pod, container corev1.Container, env []string, kubeconfig string) []string {
	var args []string
	for _, arg := range p.Args {
		args = append(args, expand(arg, []string{"KUBECONFIG=" + kubeconfig, "POD_NAME=" + pod.Name}))
	}
	own := append(append([]string{}, container.Command...), container.Args...)
	// Where the image has no entrypoint, the first names the executable.
	if len(own) > 0 && !strings.HasPrefix(own[0], "-") {
		own = own[1:]
	}
	for _, arg := range own {
		args = append(args, expand(arg, env))
	}
	return args
}

var artifactRegistry = regexp.MustCompile(`^[a-z0-9-]+-docker\.pkg\.dev/[^/]+/[^/]+/`)

// repository returns the repository of an image reference without its tag and
// digest, and without the registry if that is Docker Hub, the default. An image in a
// repository of Artifact Registry is taken for the one of Docker Hub that it caches.
func repository(image string) string {
	name, _, _ := strings.Cut(image, "@")
	// A colon before the last slash belongs to the registry's port.
	if slash, colon := strings.LastIndex(name, "/"), strings.LastIndex(name, ":"); colon > slash {
		name = name[:colon]
	}
	name = artifactRegistry.ReplaceAllString(name, "")
	for _, hub := range []string{"docker.io/", "index.docker.io/"} {
		name = strings.TrimPrefix(name, hub)
	}
	return strings.TrimPrefix(name, "library/")
}

// logName is the file that keeps the output of a container's program.
func logName(pod *corev1.Pod, container string) string {
	return fmt.Sprintf("%s_%s_%s.log", pod.Namespace, pod.Name, container)
}

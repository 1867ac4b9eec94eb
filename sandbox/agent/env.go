package agent

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// environment resolves a container's environment variables as a kubelet does,
// for the sources that the sandbox's programs use.
func environment(pod *corev1.Pod, container corev1.Container) ([]string, error) {
	if len(container.EnvFrom) != 0 {
		return nil, fmt.Errorf("container %s: envFrom is not supported here", container.Name)
	}
	var env []string
	for _, variable := range container.Env {
		value := expand(variable.Value, env)
		if variable.ValueFrom != nil {
			if variable.ValueFrom.FieldRef == nil {
				return nil, fmt.Errorf("container %s: env %s: of valueFrom only fieldRef is supported here", container.Name, variable.Name)
			}
			var err error
			value, err = field(pod, variable.ValueFrom.FieldRef.FieldPath)
			if err != nil {
				return nil, fmt.Errorf("container %s: env %s: %w", container.Name, variable.Name, err)
			}
		}
		env = append(env, variable.Name+"="+value)
	}
	return env, nil
}

var labelPath = regexp.MustCompile(`^metadata\.labels\['([^']+)'\]$`)

// field returns the value of a field of the pod.
func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	}
	if label := labelPath.FindStringSubmatch(path); label != nil {
		return pod.Labels[label[1]], nil
	}
	return "", fmt.Errorf("fieldRef %s is not supported here; "+
		"metadata.name, metadata.namespace, spec.serviceAccountName and metadata.labels['KEY'] are", path)
}

var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z0-9_.-]+\)`)

// expand replaces $(NAME) by the last value of NAME in env, as Kubernetes does in arguments and
// values. $$ is a dollar sign, and a reference to an unknown variable stays as it is.
func expand(s string, env []string) string {
	return reference.ReplaceAllStringFunc(s, func(match string) string {
		if match == "$$" {
			return "$"
		}
		name := match[2 : len(match)-1]
		for i := len(env) - 1; i >= 0; i-- {
			if value, ok := strings.CutPrefix(env[i], name+"="); ok {
				return value
			}
		}
		return match
	})
}

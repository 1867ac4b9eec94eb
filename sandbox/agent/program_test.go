package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRepository(t *testing.T) {
	tests := map[string]string{
		"natsio/nats-operator:0.8.3":           "natsio/nats-operator",
		"docker.io/natsio/nats-operator:0.8.3": "natsio/nats-operator",
		"natsio/nats-operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": "natsio/nats-operator",
		"docker.io/library/nats:2":            "nats",
		"nats":                                "nats",
		"localhost:5000/natsio/nats-operator": "localhost:5000/natsio/nats-operator",
		"europe-docker.pkg.dev/p/r/natsio/nats-operator:0.8.3": "natsio/nats-operator",
		"us-docker.pkg.dev/p/r/library/nats":                   "nats",
	}
	for image, want := range tests {
		assert.Equal(t, want, repository(image), image)
	}
}

func TestArguments(t *testing.T) {
	program := program{args: []string{"--config=$(KUBECONFIG)", "--pod=$(POD_NAME)"}}
	own := []string{"--config=/kubeconfig", "--pod=p"}
	tests := map[string]struct {
		command, args []string
		want          []string
	}{
		"none":                              {nil, nil, nil},
		"the program's name leads the args": {nil, []string{"operator", "--a=b"}, []string{"--a=b"}},
		"only flags":                        {nil, []string{"--a=b"}, []string{"--a=b"}},
		"flags in the command":              {[]string{"operator", "--a"}, []string{"--b"}, []string{"--a", "--b"}},
		"environment in args":               {nil, []string{"--ns=$(NAMESPACE)"}, []string{"--ns=n"}},
		"the agent's variables in args":     {nil, []string{"--config=$(KUBECONFIG)"}, []string{"--config=$(KUBECONFIG)"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			container := corev1.Container{Command: test.command, Args: test.args}
			got := program.arguments(pod, container, []string{"NAMESPACE=n"}, host{kubeconfig: "/kubeconfig"})
			assert.Equal(t, append(append([]string{}, own...), test.want...), got)
		})
	}
}

package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/internal/testkit"
)

func TestRepository(t *testing.T) {
	for image, want := range map[string]string{
		"natsio/nats-operator:0.8.3":           "natsio/nats-operator",
		"docker.io/natsio/nats-operator:0.8.3": "natsio/nats-operator",
		"natsio/nats-operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": "natsio/nats-operator",
		"docker.io/library/nats:2":            "nats",
		"nats":                                "nats",
		"localhost:5000/natsio/nats-operator": "localhost:5000/natsio/nats-operator",
		"europe-docker.pkg.dev/p/r/natsio/nats-operator:0.8.3": "natsio/nats-operator",
		"us-docker.pkg.dev/p/r/library/nats":                   "nats",
	} {
		assert.Equal(t, want, repository(image), image)
	}
}

func TestArguments(t *testing.T) {
	program := program{args: []string{"--config=$(KUBECONFIG)", "--pod=$(POD_NAME)"}}
	own := []string{"--config=/kubeconfig", "--pod=p"}
	for name, test := range map[string]struct {
		command, args []string
		want          []string
	}{
		"none":                              {nil, nil, nil},
		"the program's name leads the args": {nil, []string{"operator", "--a=b"}, []string{"--a=b"}},
		"only flags":                        {nil, []string{"--a=b"}, []string{"--a=b"}},
		"flags in the command":              {[]string{"operator", "--a"}, []string{"--b"}, []string{"--a", "--b"}},
		"environment in args":               {nil, []string{"--ns=$(NAMESPACE)"}, []string{"--ns=n"}},
		"the agent's variables in args":     {nil, []string{"--config=$(KUBECONFIG)"}, []string{"--config=$(KUBECONFIG)"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			container := corev1.Container{Command: test.command, Args: test.args}
			got := program.arguments(pod, container, []string{"NAMESPACE=n"}, host{kubeconfig: "/kubeconfig"})
			assert.Equal(t, append(append([]string{}, own...), test.want...), got)
		})
	}
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func TestEnvironment(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", Labels: map[string]string{"app.kubernetes.io/name": "nats"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "account"},
	}
	for name, test := range map[string]struct {
		env  []corev1.EnvVar
		want []string
	}{
		"a plain value":      {[]corev1.EnvVar{{Name: "A", Value: "b"}}, []string{"A=b"}},
		"the pod's name":     {[]corev1.EnvVar{fromField("A", "metadata.name")}, []string{"A=p"}},
		"its namespace":      {[]corev1.EnvVar{fromField("A", "metadata.namespace")}, []string{"A=n"}},
		"its account":        {[]corev1.EnvVar{fromField("A", "spec.serviceAccountName")}, []string{"A=account"}},
		"a label":            {[]corev1.EnvVar{fromField("A", "metadata.labels['app.kubernetes.io/name']")}, []string{"A=nats"}},
		"a label it has not": {[]corev1.EnvVar{fromField("A", "metadata.labels['x']")}, []string{"A="}},
		"a reference": {
			[]corev1.EnvVar{fromField("NAME", "metadata.name"), {Name: "A", Value: "x-$(NAME)-$$(NAME)"}},
			[]string{"NAME=p", "A=x-p-$(NAME)"},
		},
		"a reference to what comes later": {
			[]corev1.EnvVar{{Name: "A", Value: "$(NAME)"}, {Name: "NAME", Value: "p"}},
			[]string{"A=$(NAME)", "NAME=p"},
		},
	} {
		assert.Equal(t, test.want, testkit.Must(environment(pod, corev1.Container{Env: test.env}))(t), name)
	}
}

func TestEnvironmentRefusesSecrets(t *testing.T) {
	secret := corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}}
	_, err := environment(&corev1.Pod{}, corev1.Container{Name: "c", Env: []corev1.EnvVar{secret}})
	assert.ErrorContains(t, err, "container c: env A: of valueFrom only fieldRef")
}

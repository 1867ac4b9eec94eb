package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
)

var root = field.NewPath("persia:key")

// container has the fields of a container that these tests use.
type container struct {
	Resources corev1.ResourceRequirements `json:"resources"`
	Env       []corev1.EnvVar             `json:"env" unique:"name"`
}

func podRead(t *testing.T, text string) (container, *input.Problems) {
	t.Helper()
	var c container
	p := &input.Problems{}
	input.Decode(p, root, input.ParseJSON(text), &c)
	return c, p
}

func problems(c container, p *input.Problems) error {
	checkResources(p, root.Child("resources"), "a server", c.Resources)
	checkEnvVars(p, root.Child("env"), c.Env)
	return p.Err()
}

const enough = `"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}`

func TestAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"only in limits": `{` + enough + `}`,
		"GPUs":           `{"resources": {"limits": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 8}, "requests": {"cpu": "500m"}}}`,
		"variables":      `{` + enough + `, "env": [{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}`,
	} {
		t.Run(name, func(t *testing.T) { assert.NoError(t, problems(podRead(t, text))) })
	}
}

func TestRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, path, says string }{
		"no memory":               {`{"resources": {"limits": {"cpu": 1}}}`, "resources.limits[memory]", "how much a server needs"},
		"no unit":                 {`{"resources": {"limits": {"cpu": 1, "memory": 600}}}`, "resources.limits[memory]", `"600": is less than 1Mi`},
		"nothing":                 {`{"resources": {"limits": {"cpu": 0, "memory": "1Gi"}}}`, "resources.limits[cpu]", "more than 0"},
		"request over limit":      {`{"resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 2}}}`, "resources.requests[cpu]", `"2": must be at most the limit, 1`},
		"part of a GPU":           {`{"resources": {"limits": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": "500m"}}}`, "resources.limits[nvidia.com/gpu]", "whole number"},
		"GPUs without limit":      {`{"resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"nvidia.com/gpu": 1}}}`, "resources.requests[nvidia.com/gpu]", "write it only in limits"},
		"claims":                  {`{"resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "claims": [{"name": "a"}]}}`, "resources.claims", "limits and requests"},
		"variable without a name": {`{` + enough + `, "env": [{"value": "b"}]}`, "env[0].name", "write a name"},
		"variable twice":          {`{` + enough + `, "env": [{"name": "A"}, {"name": "A"}]}`, "env[1].name", `"A": is already used by persia:key.env[0]`},
	} {
		t.Run(name, func(t *testing.T) {
			err := problems(podRead(t, test.text))
			require.ErrorContains(t, err, "1 problem\n")
			require.ErrorContains(t, err, "persia:key."+test.path+":")
			require.ErrorContains(t, err, test.says)
		})
	}
}

func TestRequests(t *testing.T) {
	c, _ := podRead(t, `{"resources": {"limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 2}, "requests": {"cpu": "500m"}}}`)
	assert.Equal(t, capacity.Resources{MilliCPU: 500, MemoryBytes: 1 << 30, GPUs: 2, Pods: 1}, PodRequests(c.Resources))
	assert.Equal(t, 2, GPUs(c.Resources))
}

func TestImages(t *testing.T) {
	for image, loose := range map[string]bool{
		"nats": true, "nats:latest": true, "nats:2.12.12": false, "registry:5000/nats": true,
		"registry:5000/nats:2": false, "nats@sha256:0000000000000000000000000000000000000000000000000000000000000000": false,
	} {
		assert.Equal(t, loose, isLooseImage(image), image)
		p := &input.Problems{}
		checkImage(p, root.Child("image"), image, "nats:2.12.12")
		assert.NoError(t, p.Err())
	}
	p := &input.Problems{}
	checkImage(p, root.Child("image"), "na ts", "nats:2.12.12")
	assert.ErrorContains(t, p.Err(), `persia:key.image: Invalid value: "na ts": must be an image reference, like nats:2.12.12`)
}

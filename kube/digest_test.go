package kube

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"persia/config"
)

// TestPodsAnnotation: the digest of an object changes when its pods do, and only then.
func TestPodsAnnotation(t *testing.T) {
	const set = `
metadata: {name: a, annotations: {b: c}}
spec: {replicas: 2, template: {spec: {containers: [{name: a, image: "a:1", resources: {limits: {cpu: "12"}}}]}}}`
	const jobs = `
metadata: {name: a}
spec: {suspend: true, replicatedJobs: [{replicas: 1, template: {spec: {completions: 2, template: {spec: {containers: [{name: a, image: "a:1"}]}}}}}]}`
	for name, c := range map[string]struct {
		kind, text, old, new string
		changes              bool
	}{
		"an image":                  {"StatefulSet", set, "a:1", "a:2", true},
		"a limit less":              {"StatefulSet", set, `cpu: "12"`, "", true},
		"a limit in other words":    {"StatefulSet", set, `cpu: "12"`, "cpu: 12000m", false},
		"replicas":                  {"StatefulSet", set, "replicas: 2", "replicas: 3", false},
		"another annotation":        {"StatefulSet", set, "b: c", "b: d", false},
		"an image of a JobSet":      {"JobSet", jobs, "a:1", "a:2", true},
		"replicas of a JobSet":      {"JobSet", jobs, "completions: 2", "completions: 3", false},
		"a JobSet that is resumed":  {"JobSet", jobs, "suspend: true", "suspend: false", false},
		"an object that has no pod": {"ConfigMap", jobs, "a:1", "a:2", false},
	} {
		t.Run(name, func(t *testing.T) {
			digest := func(text string) string {
				var object interface {
					runtime.Object
					GetAnnotations() map[string]string
				} = &Custom[map[string]any]{}
				if c.kind == "StatefulSet" {
					object = &appsv1.StatefulSet{}
				}
				require.NoError(t, yaml.Unmarshal([]byte(text), object))
				require.NoError(t, markPods(object, c.kind))
				return object.GetAnnotations()[config.PodsAnnotation]
			}
			assert.Equal(t, c.changes, digest(c.text) != digest(strings.Replace(c.text, c.old, c.new, 1)))
			assert.Equal(t, c.kind == "ConfigMap", digest(c.text) == "")
		})
	}
}

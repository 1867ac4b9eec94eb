package kube

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/internals"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/internal/testkit"
)

func TestLabelName(t *testing.T) {
	long := strings.Repeat("a", 80)
	for name, parts := range map[string][]string{
		"short":           {"criteo", "nn-worker"},
		"just as long":    {long[:60], "bc"},
		"too long":        {long},
		"cut at a hyphen": {long[:53], "b", long},
	} {
		t.Run(name, func(t *testing.T) {
			got, whole := LabelName(parts...), strings.Join(parts, "-")
			assert.Empty(t, validation.IsDNS1123Label(got), got)
			if len(whole) <= validation.DNS1123LabelMaxLength {
				assert.Equal(t, whole, got)
			} else {
				assert.NotContains(t, got, "--")
				assert.NotEqual(t, got, LabelName(whole+"1"))
			}
		})
	}
}

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

// TestOutputs: the outputs of a component are the fields with a tag and a value.
func TestOutputs(t *testing.T) {
	type Access struct {
		URL string `pulumi:"url"`
	}
	type component struct {
		pulumi.ResourceState
		*Access
		Size, unexported int `pulumi:"size"`
	}
	outputs := Outputs(&component{Access: &Access{URL: "u"}})
	require.Len(t, outputs, 1)
	assert.Equal(t, "u", testkit.Must(internals.UnsafeAwaitOutput(t.Context(), outputs["url"].(pulumi.Output)))(t).Value)
	assert.Equal(t, []string{"size"}, slices.Collect(maps.Keys(Outputs(&component{Size: 3, unexported: 4}))))
	assert.Empty(t, Outputs(struct{ Name string }{"n"}))
}

// unknown is an object of no kind.
type unknown struct{ corev1.Pod }

func (u *unknown) DeepCopyObject() runtime.Object { return u }

// TestRegisterNamesTheObject: an error says which object it is about, once.
func TestRegisterNamesTheObject(t *testing.T) {
	err := pulumi.RunErr(func(ctx *pulumi.Context) error {
		r := NewRegistrar(ctx)
		r.Component("persia:test:Component", "example").Add("example", &unknown{}, nil)
		return r.End()
	}, pulumi.WithMocks("project", "stack", &testkit.Recorder{}))
	assert.ErrorContains(t, err, "register example: ")
}

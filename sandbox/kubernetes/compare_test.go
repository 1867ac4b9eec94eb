package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// object reads a manifest as the API server's JSON is read.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(json))
	return obj
}

const liveConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: persia
  uid: 1
  resourceVersion: "10"
  generation: 1
  creationTimestamp: "2026-01-01T00:00:00Z"
  managedFields: [{manager: pulumi-sandbox}]
  labels: {role: trainer}
data: {workers: "8"}
`

func TestSame(t *testing.T) {
	tests := map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"nothing": {func(*unstructured.Unstructured) {}, true},
		"bookkeeping": {func(obj *unstructured.Unstructured) {
			obj.SetResourceVersion("11")
			obj.SetGeneration(2)
			obj.SetManagedFields(nil)
		}, true},
		"status": {func(obj *unstructured.Unstructured) {
			obj.Object["status"] = map[string]any{"phase": "Active"}
		}, true},
		"a value": {func(obj *unstructured.Unstructured) { obj.Object["data"] = map[string]any{"workers": "9"} }, false},
		"a label": {func(obj *unstructured.Unstructured) { obj.SetLabels(map[string]string{"role": "loader"}) }, false},
		"an added label": {func(obj *unstructured.Unstructured) {
			obj.SetLabels(map[string]string{"role": "trainer", "added": "yes"})
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			live, after := object(t, liveConfigMap), object(t, liveConfigMap)
			test.change(after)
			assert.Equal(t, test.want, same(live, after))
			assert.Equal(t, "10", live.GetResourceVersion(), "comparing must leave the objects as they are")
		})
	}
}

// In these tests want is what the API server makes of the inputs, and live
// what it holds.
func TestProject(t *testing.T) {
	const applied = `
spec:
  replicas: 3
  paused: false
  containers:
  - name: server
    image: persia:1
    imagePullPolicy: Always
    resources: {limits: {cpu: "1"}}
  args: [a, b]
`
	const inputs = `
spec:
  replicas: 3
  containers:
  - name: server
    image: persia:1
    resources: {limits: {cpu: 1000m}}
    env: []
  args: [a, b]
`
	tests := map[string]struct{ live, want string }{
		"no drift keeps the inputs as they are written": {applied, inputs},
		"a changed value is taken, one written in another form is not": {`
spec:
  replicas: 5
  paused: false
  containers:
  - name: server
    image: persia:2
    imagePullPolicy: Always
    resources: {limits: {cpu: "1"}}
  args: [a, b]
`, `
spec:
  replicas: 5
  containers:
  - name: server
    image: persia:2
    resources: {limits: {cpu: 1000m}}
    env: []
  args: [a, b]
`},
		"a field that the inputs do not have stays out": {`
spec:
  replicas: 3
  paused: true
  containers:
  - name: server
    image: persia:1
    imagePullPolicy: Never
    resources: {limits: {cpu: "1"}}
  args: [a, b]
`, inputs},
		"a field removed from the cluster is removed": {`
spec:
  paused: false
  containers:
  - name: server
    image: persia:1
    imagePullPolicy: Always
    resources: {limits: {cpu: "1"}}
  args: [a, b]
`, `
spec:
  containers:
  - name: server
    image: persia:1
    resources: {limits: {cpu: 1000m}}
    env: []
  args: [a, b]
`},
		"elements pair by name, not by position": {`
spec:
  replicas: 3
  paused: false
  containers:
  - name: injected
    image: sidecar:1
  - name: server
    image: persia:3
    imagePullPolicy: Always
    resources: {limits: {cpu: "1"}}
  args: [a, b]
`, `
spec:
  replicas: 3
  containers:
  - name: server
    image: persia:3
    resources: {limits: {cpu: 1000m}}
    env: []
  args: [a, b]
`},
		"a list of another length is taken whole": {`
spec:
  replicas: 3
  paused: false
  containers:
  - name: server
    image: persia:1
    imagePullPolicy: Always
    resources: {limits: {cpu: "1"}}
  args: [a, b, c]
`, `
spec:
  replicas: 3
  containers:
  - name: server
    image: persia:1
    resources: {limits: {cpu: 1000m}}
    env: []
  args: [a, b, c]
`},
	}
	read := func(t *testing.T, text string) (value any) {
		require.NoError(t, yaml.Unmarshal([]byte(text), &value))
		return value
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := project(read(t, inputs), read(t, test.live), read(t, applied))
			assert.Equal(t, read(t, test.want), got)
		})
	}
}

func TestProjectWithNothingToCompareWithTakesAllThatLives(t *testing.T) {
	input := map[string]any{"serviceName": "a", "stringData": map[string]any{"k": "v"}}
	live := map[string]any{"serviceName": "b", "added": "c"}
	want := map[string]any{"serviceName": "b", "stringData": map[string]any{"k": "v"}}
	assert.Equal(t, want, project(input, live, nil))
}

func TestStringDataIsAppliedAsData(t *testing.T) {
	obj := object(t, `
apiVersion: v1
kind: Secret
data: {kept: a2VwdA==, user: b2xk}
stringData: {user: admin}
`)
	encodeStringData(obj)
	assert.Equal(t, map[string]any{"kept": "a2VwdA==", "user": "YWRtaW4="}, obj.Object["data"])
	assert.NotContains(t, obj.Object, "stringData")

	decodeStringData(obj.Object, map[string]any{"user": "", "gone": ""})
	assert.Equal(t, map[string]any{"user": "admin"}, obj.Object["stringData"])
}

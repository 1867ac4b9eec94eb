package kubeprovider

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"persia/internal/testkit"
)

func properties(t *testing.T, manifest string) resource.PropertyMap {
	t.Helper()
	var content map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &content))
	return resource.NewPropertyMapFromMap(content)
}

func objectIn(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	return testkit.Must(objectOf(properties(t, manifest)))(t)
}

func TestDiff(t *testing.T) {
	const (
		settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia}, data: {k: v}}`
		set      = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: persia}, spec: {serviceName: a, replicas: 2}}`
		service  = `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: persia}, spec: {ports: [{name: p, port: 8888, targetPort: 0}]}}`
		secret   = `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}`
		job      = `{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: persia}, spec: {template: {spec: {}}}}`
	)
	unknown := resource.MakeComputed(resource.NewProperty(""))
	type kinds = map[string]plugin.DiffKind
	for name, test := range map[string]struct {
		before, after string
		live          string // before, where the API server adds nothing
		ignore        []string
		unknown       func(after resource.PropertyMap)
		want          kinds
		deleteFirst   bool
	}{
		"no change": {before: settings, after: settings},
		"a label": {
			before: settings,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia, labels: {l: m}}, data: {k: v}}`,
			want:   kinds{"metadata.labels": plugin.DiffAdd},
		},
		"what the API server adds": {
			before: settings, after: settings,
			live: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia, uid: u, labels: {l: m}}, data: {k: v}}`,
		},
		"what the API server answers otherwise, for ever": {
			before: service, after: service,
			live: `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: persia}, spec: {ports: [{name: p, port: 8888, targetPort: 8888, protocol: TCP}]}}`,
			want: kinds{"spec.ports[0].targetPort": plugin.DiffUpdate},
		},
		"another way to write a quantity": {
			before: `{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {cpu: 1000m}}}`,
			after:  `{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {cpu: 1000m}}}`,
			live:   `{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {cpu: "1"}}}`,
		},
		"an unknown field": {before: settings, after: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia}, data: {k: v}, dta: {k: v}}`},
		"another name is another object next to the first": {
			before: settings,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: persia}, data: {k: v}}`,
			want:   kinds{"metadata.name": plugin.DiffUpdateReplace},
		},
		"data of a Secret": {
			before: secret, live: `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: dg==}}`,
			after: `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: w}}`,
			want:  kinds{"data.k": plugin.DiffUpdateReplace}, deleteFirst: true,
		},
		"the same Secret":           {before: secret, live: `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: dg==}}`, after: secret},
		"replicas":                  {before: set, after: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: persia}, spec: {serviceName: a, replicas: 3}}`, want: kinds{"spec.replicas": plugin.DiffUpdate}},
		"replicas that are ignored": {before: set, ignore: []string{"spec.replicas"}, after: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: persia}, spec: {serviceName: a, replicas: 3}}`},
		"an immutable field": {
			before: set,
			after:  `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: persia}, spec: {serviceName: b, replicas: 2}}`,
			want:   kinds{"spec.serviceName": plugin.DiffUpdateReplace}, deleteFirst: true,
		},
		"an immutable field that the official provider takes for mutable": {
			before: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {volumeMode: Filesystem}}`,
			after:  `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {volumeMode: Block}}`,
			want:   kinds{"spec.volumeMode": plugin.DiffUpdate},
		},
		// The engine asks so while a resource on which the specification depends is replaced.
		"a specification that is not known yet": {
			before: job, after: job, unknown: func(after resource.PropertyMap) { after["spec"] = unknown },
			want: kinds{"spec": plugin.DiffUpdate},
		},
		"a field that is not known yet and replaces a Job": {
			before: job, after: job, unknown: func(after resource.PropertyMap) { after["spec"].ObjectValue()["template"] = unknown },
			want: kinds{"spec.template": plugin.DiffUpdateReplace}, deleteFirst: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.live == "" {
				test.live = test.before
			}
			after := properties(t, test.after)
			if test.unknown != nil {
				test.unknown(after)
			}
			diff := testkit.Must(New("4.30.0", "").Diff(t.Context(), plugin.DiffRequest{
				OldInputs: properties(t, test.before), OldOutputs: properties(t, test.live), NewInputs: after, IgnoreChanges: test.ignore,
			}))(t)
			got := kinds{}
			for path, change := range diff.DetailedDiff {
				got[path] = change.Kind
			}
			if test.want == nil {
				test.want = kinds{}
			}
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.deleteFirst, diff.DeleteBeforeReplace)
			assert.Equal(t, len(test.want) > 0, diff.Changes == plugin.DiffSome)
		})
	}
}

func TestKeepIgnored(t *testing.T) {
	obj := objectIn(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 3, paused: true}}`)
	live := objectIn(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 7, paused: false}}`)
	kept := testkit.Must(keepIgnored(obj, live, []string{"spec.replicas"}))(t)
	assert.Equal(t, map[string]any{"replicas": int64(7), "paused": true}, kept.Object["spec"])
}

func TestPrune(t *testing.T) {
	for name, test := range map[string]struct{ content, like, want string }{
		"fields that were added, and that are gone": {`{a: {b: 1, c: 2}, d: 3}`, `{a: {b: 0, e: 0}}`, `{a: {b: 1}}`},
		"another type":               {`{a: {b: 1}}`, `{a: text}`, `{a: {b: 1}}`},
		"an element that was added":  {`{a: [1, 2]}`, `{a: [1]}`, `{a: [1]}`},
		"an element that is gone":    {`{a: [1]}`, `{a: [1, 2]}`, `{a: [1]}`},
		"elements of other types":    {`{a: [1, 2]}`, `{a: [text]}`, `{a: [1, 2]}`},
		"an element that came first": {`{a: [{n: x}, {n: y}]}`, `{a: [{n: y}]}`, `{a: [{n: x}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			var content, like, want any
			require.NoError(t, yaml.Unmarshal([]byte(test.content), &content))
			require.NoError(t, yaml.Unmarshal([]byte(test.like), &like))
			require.NoError(t, yaml.Unmarshal([]byte(test.want), &want))
			assert.Equal(t, want, prune(content, like))
		})
	}
}

// TestSecrets: the content of a Secret is secret, whatever the program says of it.
func TestSecrets(t *testing.T) {
	inputs := properties(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}`)
	outputs := outputsOf(testkit.Must(objectOf(inputs))(t), inputs)
	assert.Equal(t, resource.MakeSecret(resource.NewProperty(properties(t, `{k: dg==}`))), outputs["data"])
	assert.Equal(t, resource.MakeSecret(resource.NewProperty(properties(t, `{k: v}`))), outputs["stringData"])
}

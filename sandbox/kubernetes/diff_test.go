package kubernetes

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func properties(t *testing.T, manifest string) resource.PropertyMap {
	t.Helper()
	var content map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &content))
	return resource.NewPropertyMapFromMap(content)
}

// Without a cluster, as in a preview before there is one, inputs are compared.
func TestDiffOfInputs(t *testing.T) {
	const before = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia}, data: {k: v}}`
	tests := map[string]struct {
		before, after string
		config        config
		want          map[string]plugin.DiffKind
		deleteFirst   bool
	}{
		"no change": {before: before, after: before},
		"a label": {
			before: before,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia, labels: {l: m}}, data: {k: v}}`,
			want:   map[string]plugin.DiffKind{"metadata.labels": plugin.DiffAdd},
		},
		"another name is another object beside the first": {
			before: before,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: persia}, data: {k: v}}`,
			want:   map[string]plugin.DiffKind{"metadata.name": plugin.DiffUpdateReplace},
		},
		"another namespace": {
			before: before,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}, data: {k: v}}`,
			want:   map[string]plugin.DiffKind{"metadata.namespace": plugin.DiffUpdateReplace},
		},
		"another kind": {
			before: before,
			after:  `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: persia}, data: {k: v}}`,
			want:   map[string]plugin.DiffKind{"kind": plugin.DiffUpdateReplace},
		},
		"another version of the group": {
			before: `{apiVersion: nats.io/v1alpha1, kind: NatsCluster, metadata: {name: a}}`,
			after:  `{apiVersion: nats.io/v1alpha2, kind: NatsCluster, metadata: {name: a}}`,
			want:   map[string]plugin.DiffKind{"apiVersion": plugin.DiffUpdate},
		},
		"another group": {
			before: `{apiVersion: nats.io/v1, kind: NatsCluster, metadata: {name: a}}`,
			after:  `{apiVersion: jetstream.nats.io/v1, kind: NatsCluster, metadata: {name: a}}`,
			want:   map[string]plugin.DiffKind{"apiVersion": plugin.DiffUpdateReplace},
		},
		"data of a ConfigMap": {
			before:      before,
			after:       `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia}, data: {k: w}}`,
			want:        map[string]plugin.DiffKind{"data.k": plugin.DiffUpdateReplace},
			deleteFirst: true,
		},
		"data of a ConfigMap that may change": {
			before: before,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia}, data: {k: w}}`,
			config: config{configMapMutable: true},
			want:   map[string]plugin.DiffKind{"data.k": plugin.DiffUpdate},
		},
		"data of a Secret": {
			before:      `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}`,
			after:       `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: w}}`,
			config:      config{configMapMutable: true},
			want:        map[string]plugin.DiffKind{"stringData.k": plugin.DiffUpdateReplace},
			deleteFirst: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := New("4.30.0")
			p.config = test.config
			diff, err := p.Diff(t.Context(), plugin.DiffRequest{
				OldInputs: properties(t, test.before), NewInputs: properties(t, test.after),
			})
			require.NoError(t, err)
			var got map[string]plugin.DiffKind
			for path, change := range diff.DetailedDiff {
				if got == nil {
					got = map[string]plugin.DiffKind{}
				}
				got[path] = change.Kind
			}
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.deleteFirst, diff.DeleteBeforeReplace)
			assert.Equal(t, len(test.want) > 0, diff.Changes == plugin.DiffSome)
		})
	}
}

func TestAValueThatIsNotKnownYetIsAChange(t *testing.T) {
	before := properties(t, `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}`)
	after := properties(t, `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {}}`)
	after["spec"].ObjectValue()["clusterIP"] = resource.MakeComputed(resource.NewProperty(resource.PropertyMap{}))
	diff, err := New("4.30.0").Diff(t.Context(), plugin.DiffRequest{OldInputs: before, NewInputs: after})
	require.NoError(t, err)
	assert.Equal(t, plugin.DiffSome, diff.Changes)
	assert.Contains(t, diff.DetailedDiff, "spec.clusterIP")
}

func TestWithin(t *testing.T) {
	for path, want := range map[string]bool{
		"data": true, "data.key": true, `data["a.b"]`: true, "dataSource": false, "spec.data": false,
	} {
		assert.Equal(t, want, within(path, "data"), path)
	}
}

func TestKeepIgnored(t *testing.T) {
	obj := object(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 3, paused: true}}`)
	live := object(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 7, paused: false}}`)
	kept, err := keepIgnored(obj, live, []string{"spec.replicas"})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"replicas": int64(7), "paused": true}, kept.Object["spec"])
}

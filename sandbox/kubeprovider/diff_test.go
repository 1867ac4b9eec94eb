package kubeprovider

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"persia/sandbox/kubeprovider/object"
)

func properties(t *testing.T, manifest string) resource.PropertyMap {
	t.Helper()
	var content map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &content))
	return resource.NewPropertyMapFromMap(content)
}

func objectIn(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj, err := object.Of(properties(t, manifest))
	require.NoError(t, err)
	return obj
}

func diffKinds(diff plugin.DiffResponse) map[string]plugin.DiffKind {
	var kinds map[string]plugin.DiffKind
	for path, change := range diff.DetailedDiff {
		if kinds == nil {
			kinds = map[string]plugin.DiffKind{}
		}
		kinds[path] = change.Kind
	}
	return kinds
}

func TestDiff(t *testing.T) {
	const (
		settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia}, data: {k: v}}`
		set      = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: persia}, spec: {serviceName: a, replicas: 2}}`
		service  = `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: persia}, spec: {ports: [{name: p, port: 8888, targetPort: 0}]}}`
	)
	tests := map[string]struct {
		before, after string
		live          string // before, where the API server adds nothing
		config        config
		ignore        []string
		want          map[string]plugin.DiffKind
		deleteFirst   bool
	}{
		"no change": {before: settings, after: settings},
		"a label": {
			before: settings,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia, labels: {l: m}}, data: {k: v}}`,
			want:   map[string]plugin.DiffKind{"metadata.labels": plugin.DiffAdd},
		},
		"what the API server adds": {
			before: settings, after: settings,
			live: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia, uid: u, labels: {l: m}}, data: {k: v}}`,
		},
		"what the API server answers otherwise, for ever": {
			before: service, after: service,
			live: `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: persia}, spec: {ports: [{name: p, port: 8888, targetPort: 8888, protocol: TCP}]}}`,
			want: map[string]plugin.DiffKind{"spec.ports[0].targetPort": plugin.DiffUpdate},
		},
		"another way to write a quantity": {
			before: `{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {cpu: 1000m}}}`,
			after:  `{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {cpu: 1000m}}}`,
			live:   `{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {cpu: "1"}}}`,
		},
		"the default namespace written out": {
			before: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
			live:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}`,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}`,
		},
		"another name is another object next to the first": {
			before: settings,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: persia}, data: {k: v}}`,
			want:   map[string]plugin.DiffKind{"metadata.name": plugin.DiffUpdateReplace},
		},
		"another namespace": {
			before: settings,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}, data: {k: v}}`,
			want:   map[string]plugin.DiffKind{"metadata.namespace": plugin.DiffUpdateReplace},
		},
		"another group": {
			before:      `{apiVersion: nats.io/v1, kind: NatsCluster, metadata: {name: a}}`,
			after:       `{apiVersion: jetstream.nats.io/v1, kind: NatsCluster, metadata: {name: a}}`,
			want:        map[string]plugin.DiffKind{"apiVersion": plugin.DiffUpdateReplace},
			deleteFirst: true,
		},
		"data of a ConfigMap": {
			before: settings,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia}, data: {k: w}}`,
			want:   map[string]plugin.DiffKind{"data.k": plugin.DiffUpdateReplace}, deleteFirst: true,
		},
		"data of a ConfigMap that may change": {
			before: settings,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: persia}, data: {k: w}}`,
			config: config{configMapMutable: true},
			want:   map[string]plugin.DiffKind{"data.k": plugin.DiffUpdate},
		},
		"data of a Secret": {
			before: `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}`,
			live:   `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: dg==}}`,
			after:  `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: w}}`,
			config: config{configMapMutable: true},
			want:   map[string]plugin.DiffKind{"data.k": plugin.DiffUpdateReplace}, deleteFirst: true,
		},
		"the same Secret": {
			before: `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}`,
			live:   `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: dg==}}`,
			after:  `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}`,
		},
		"replicas": {
			before: set,
			after:  `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: persia}, spec: {serviceName: a, replicas: 3}}`,
			want:   map[string]plugin.DiffKind{"spec.replicas": plugin.DiffUpdate},
		},
		"replicas that are ignored": {
			before: set, ignore: []string{"spec.replicas"},
			after: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: persia}, spec: {serviceName: a, replicas: 3}}`,
		},
		"an immutable field": {
			before: set,
			after:  `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: persia}, spec: {serviceName: b, replicas: 2}}`,
			want:   map[string]plugin.DiffKind{"spec.serviceName": plugin.DiffUpdateReplace}, deleteFirst: true,
		},
		"an immutable field that the official provider takes for mutable": {
			before: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {volumeMode: Filesystem}}`,
			after:  `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {volumeMode: Block}}`,
			want:   map[string]plugin.DiffKind{"spec.volumeMode": plugin.DiffUpdate},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.live == "" {
				test.live = test.before
			}
			p := New("4.30.0", "")
			p.config = test.config
			diff, err := p.Diff(t.Context(), plugin.DiffRequest{
				OldInputs: properties(t, test.before), OldOutputs: properties(t, test.live),
				NewInputs: properties(t, test.after), IgnoreChanges: test.ignore,
			})
			require.NoError(t, err)
			assert.Equal(t, test.want, diffKinds(diff))
			assert.Equal(t, test.deleteFirst, diff.DeleteBeforeReplace)
			assert.Equal(t, len(test.want) > 0, diff.Changes == plugin.DiffSome)
		})
	}
}

func TestAValueThatIsNotKnownYetIsAChange(t *testing.T) {
	before := properties(t, `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}`)
	after := properties(t, `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {}}`)
	after["spec"].ObjectValue()["clusterIP"] = resource.MakeComputed(resource.NewProperty(resource.PropertyMap{}))
	diff, err := New("4.30.0", "").Diff(t.Context(), plugin.DiffRequest{OldInputs: before, OldOutputs: before, NewInputs: after})
	require.NoError(t, err)
	assert.Equal(t, map[string]plugin.DiffKind{"spec.clusterIP": plugin.DiffUpdateReplace}, diffKinds(diff))
}

func TestWithin(t *testing.T) {
	for path, want := range map[string]bool{
		"data": true, "data.key": true, `data["a.b"]`: true, "dataSource": false, "spec.data": false,
	} {
		assert.Equal(t, want, within(path, "data"), path)
	}
}

func TestKeepIgnored(t *testing.T) {
	obj := objectIn(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 3, paused: true}}`)
	live := objectIn(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 7, paused: false}}`)
	kept, err := keepIgnored(obj, live, []string{"spec.replicas"})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"replicas": int64(7), "paused": true}, kept.Object["spec"])
}

// TestDiffOfAnUnknownSpecification checks the engine's question while a resource on which the
// specification depends is replaced: a workload is updated, unless a field that replaces it is
// unknown itself.
func TestDiffOfAnUnknownSpecification(t *testing.T) {
	unknown := resource.MakeComputed(resource.NewProperty(""))
	deployment := properties(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: persia}, spec: {replicas: 1, selector: {matchLabels: {a: b}}}}`)
	job := properties(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: persia}, spec: {template: {spec: {}}}}`)
	template := job.Copy()
	template["spec"] = resource.NewProperty(resource.PropertyMap{"template": unknown})
	specification := deployment.Copy()
	specification["spec"] = unknown

	cases := map[string]struct {
		before, after resource.PropertyMap
		want          map[string]plugin.DiffKind
	}{
		"the specification":           {deployment, specification, map[string]plugin.DiffKind{"spec": plugin.DiffUpdate}},
		"a field that replaces a Job": {job, template, map[string]plugin.DiffKind{"spec.template": plugin.DiffUpdateReplace}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			changes := changesOf(test.before, test.after)
			changes.markReplaced(test.after, replacing(test.after, config{})...)
			got := map[string]plugin.DiffKind{}
			for path, diff := range changes.paths {
				got[path] = diff.Kind
			}
			assert.Equal(t, test.want, got)
		})
	}
}

package readiness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parsed(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	require.NoError(t, obj.UnmarshalJSON(text))
	return obj
}

// job returns a Job with annotations, and a condition if one is named.
func job(annotations map[string]string, condition string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"status": map[string]any{"startTime": "2026-01-01T00:00:00Z", "active": int64(1)},
	}}
	obj.SetAnnotations(annotations)
	if condition != "" {
		conditions := []any{map[string]any{"type": condition, "status": "True"}}
		obj.Object["status"].(map[string]any)["conditions"] = conditions
	}
	return obj
}

// TestReadinessOfAJob: it is waited for until it is complete, unless the program says
// that it is not to be.
func TestReadinessOfAJob(t *testing.T) {
	skip := map[string]string{annotationSkipAwait: "true"}
	for name, test := range map[string]struct {
		job           *unstructured.Unstructured
		ready, failed bool
	}{
		"running":                           {job: job(nil, "")},
		"running, with false to skip":       {job: job(map[string]string{annotationSkipAwait: "false"}, "")},
		"about to be complete":              {job: job(nil, "SuccessCriteriaMet")},
		"complete":                          {job: job(nil, "Complete"), ready: true},
		"failed":                            {job: job(nil, "Failed"), failed: true},
		"running, and not to be waited for": {job: job(skip, ""), ready: true},
		"failed, and not to be waited for":  {job: job(skip, "Failed"), ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			readiness, err := Of(t.Context(), nil, test.job)
			require.NoError(t, err)
			ready, _, err := readiness(test.job)
			assert.Equal(t, test.ready, ready)
			assert.Equal(t, test.failed, err != nil)
		})
	}
}

// TestReadinessByKind checks what the official provider waits for, by kind.
func TestReadinessByKind(t *testing.T) {
	const set = "apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, "
	for name, test := range map[string]struct {
		obj   string
		ready bool
	}{
		"a namespace":                          {`{apiVersion: v1, kind: Namespace}`, true},
		"a custom resource that says not":      {`{apiVersion: example.com/v1, kind: Thing, status: {conditions: [{type: Ready, status: "False"}]}}`, true},
		"a definition":                         {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}`, true},
		"a volume without a phase":             {`{apiVersion: v1, kind: PersistentVolume}`, false},
		"a volume that is released":            {`{apiVersion: v1, kind: PersistentVolume, status: {phase: Released}}`, false},
		"a volume that is available":           {`{apiVersion: v1, kind: PersistentVolume, status: {phase: Available}}`, true},
		"a claim that is pending":              {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, false},
		"a claim that is bound":                {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, true},
		"a secret":                             {`{apiVersion: v1, kind: Secret}`, true},
		"a token's secret":                     {`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token}`, false},
		"a quota that is not counted":          {`{apiVersion: v1, kind: ResourceQuota, spec: {hard: {cpu: "1"}}}`, false},
		"a headless service":                   {`{apiVersion: v1, kind: Service, spec: {clusterIP: None}}`, true},
		"a service of another's name":          {`{apiVersion: v1, kind: Service, spec: {type: ExternalName}}`, true},
		"a load balancer without an address":   {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: None}}`, false},
		"a set that rolls out":                 {"{" + set + "spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, currentRevision: a, updateRevision: b}}", false},
		"a set that is ready":                  {"{" + set + "spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, currentReplicas: 1, currentRevision: b, updateRevision: b}}", true},
		"a set whose change is not seen yet":   {"{" + set + "spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, currentRevision: b, updateRevision: b}}", false},
		"a set whose pods are deleted by hand": {"{" + set + "spec: {replicas: 1, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, currentRevision: a, updateRevision: b}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := parsed(t, test.obj)
			readiness, err := Of(t.Context(), nil, obj)
			require.NoError(t, err)
			ready, waitingFor, err := readiness(obj)
			require.NoError(t, err)
			assert.Equal(t, test.ready, ready, waitingFor)
		})
	}
}

// TestTimeouts: how long an object is waited for.
func TestTimeouts(t *testing.T) {
	for name, test := range map[string]struct {
		obj  string
		want time.Duration
	}{
		"a workload":          {`{apiVersion: apps/v1, kind: StatefulSet}`, 10 * time.Minute},
		"a custom resource":   {`{apiVersion: example.com/v1, kind: Thing}`, 10 * time.Minute},
		"a volume":            {`{apiVersion: v1, kind: PersistentVolume}`, 5 * time.Minute},
		"a claim":             {`{apiVersion: v1, kind: PersistentVolumeClaim}`, 5 * time.Minute},
		"a quota":             {`{apiVersion: v1, kind: ResourceQuota}`, time.Minute},
		"an annotated volume": {`{apiVersion: v1, kind: PersistentVolume, metadata: {annotations: {pulumi.com/timeoutSeconds: "7"}}}`, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, Timeout(parsed(t, test.obj))) })
	}
}

// TestReadinessOnRead checks which objects a refresh finds unready, so that the next update waits
// for them.
func TestReadinessOnRead(t *testing.T) {
	for name, test := range map[string]struct {
		obj   string
		asked bool
	}{
		"a workload":                    {`{apiVersion: apps/v1, kind: Deployment}`, true},
		"a workload that is not waited": {`{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {pulumi.com/skipAwait: "true"}}}`, false},
		"a job with its own conditions": {`{apiVersion: batch/v1, kind: Job, metadata: {annotations: {pulumi.com/waitFor: condition=Failed}}}`, true},
		"a volume":                      {`{apiVersion: v1, kind: PersistentVolume}`, false},
		"a claim":                       {`{apiVersion: v1, kind: PersistentVolumeClaim}`, false},
		"a custom resource":             {`{apiVersion: example.com/v1, kind: Thing}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.asked, OnRead(t.Context(), nil, parsed(t, test.obj)) != nil)
		})
	}
}

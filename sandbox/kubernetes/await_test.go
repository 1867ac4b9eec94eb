package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// job is a Job with annotations, and a condition if one is named.
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
			readiness, err := (&client{}).readinessOf(t.Context(), test.job)
			require.NoError(t, err)
			ready, _, err := readiness(test.job)
			assert.Equal(t, test.ready, ready)
			assert.Equal(t, test.failed, err != nil)
		})
	}
}

// TestPropagation: the pods of a workload are gone when it is.
func TestPropagation(t *testing.T) {
	for name, test := range map[string]struct {
		apiVersion, kind, annotation string
		want                         metav1.DeletionPropagation
	}{
		"a StatefulSet":             {"apps/v1", "StatefulSet", "", metav1.DeletePropagationForeground},
		"a Job":                     {"batch/v1", "Job", "", metav1.DeletePropagationForeground},
		"a Job that says how":       {"batch/v1", "Job", "background", metav1.DeletePropagationBackground},
		"a Job of another kind":     {"example.com/v1", "Job", "", metav1.DeletePropagationBackground},
		"a ConfigMap":               {"v1", "ConfigMap", "", metav1.DeletePropagationBackground},
		"a ConfigMap that says how": {"v1", "ConfigMap", "foreground", metav1.DeletePropagationForeground},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": test.apiVersion, "kind": test.kind}}
			obj.SetAnnotations(map[string]string{annotationPropagation: test.annotation})
			assert.Equal(t, test.want, propagation(obj))
		})
	}
}

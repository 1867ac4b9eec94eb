package readiness

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWaitForHolds(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"generation": int64(2)},
		"spec":     map[string]any{"size": int64(60), "paused": false, "note": "a=b", "nothing": nil},
		"status": map[string]any{
			"size":  int64(60),
			"empty": map[string]any{},
			"conditions": []any{
				map[string]any{"type": "Ready", "status": "True", "observedGeneration": int64(2)},
				map[string]any{"type": "Synced", "status": "True", "observedGeneration": int64(1)},
				map[string]any{"type": "Degraded", "status": "False"},
			},
		},
	}}
	tests := map[string]struct {
		waitFor string
		want    bool
	}{
		"a number equal to the wanted one":      {"jsonpath={.status.size}=60", true},
		"a number other than the wanted one":    {"jsonpath={.status.size}=30", false},
		"a boolean":                             {"jsonpath={.spec.paused}=false", true},
		"a path that exists":                    {"jsonpath={.status.size}", true},
		"a path to an object that exists":       {"jsonpath={.status.empty}", true},
		"a path that does not exist":            {"jsonpath={.status.ready}", false},
		"a null does not exist":                 {"jsonpath={.spec.nothing}", false},
		"an absent value equals nothing":        {"jsonpath={.status.ready}=true", false},
		"an index past the end":                 {"jsonpath={.status.conditions[7].status}=True", false},
		"a filter with equal signs":             {`jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`, true},
		"a filter with a brace in quotes":       {`jsonpath={.status.conditions[?(@.type=="}")].status}=True`, false},
		"a value with an equal sign":            {"jsonpath={.spec.note}=a=b", true},
		"a condition that is true":              {"condition=Ready", true},
		"a condition of another case":           {"condition=ready=true", true},
		"a condition wanted false":              {"condition=Degraded=False", true},
		"a condition wanted false that is true": {"condition=Ready=False", false},
		"a condition that is not there":         {"condition=Available", false},
		"a condition of an older generation":    {"condition=Synced", false},
		"an array of which all hold":            {`["jsonpath={.status.size}=60", "condition=Ready"]`, true},
		"an array of which one does not hold":   {`["jsonpath={.status.size}=60", "condition=Available"]`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conditions, err := parseWaitFor(test.waitFor)
			require.NoError(t, err)
			met, _, err := evaluate(conditions, object)
			require.NoError(t, err)
			assert.Equal(t, test.want, met)
		})
	}
}

func TestWaitForNamesWhatItWaitsFor(t *testing.T) {
	conditions, err := parseWaitFor(`["condition=Ready", "jsonpath={.status.size}=3", "jsonpath={.kind}=Thing"]`)
	require.NoError(t, err)
	_, waitingFor, err := evaluate(conditions, &unstructured.Unstructured{Object: map[string]any{"kind": "Thing"}})
	require.NoError(t, err)
	assert.Equal(t, "waiting for condition=Ready, jsonpath={.status.size}=3", waitingFor)
}

func TestWaitForRefusesToCompareAWholeObject(t *testing.T) {
	conditions, err := parseWaitFor("jsonpath={.status}=up")
	require.NoError(t, err)
	_, _, err = evaluate(conditions, &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}})
	assert.ErrorContains(t, err, "whole object")
}

func TestWaitForIsRefused(t *testing.T) {
	tests := map[string]struct{ waitFor, want string }{
		"no prefix":              {"Ready", "want jsonpath={PATH}=VALUE or condition=TYPE"},
		"an empty array":         {"[]", "at least one"},
		"a path without braces":  {"jsonpath=.status.size=60", "must be in braces"},
		"a brace left open":      {"jsonpath={.status.size=60", "not closed"},
		"no value":               {"jsonpath={.status.size}=", "want {.path} or {.path}=value"},
		"text after the path":    {"jsonpath={.status.size}60", "want {.path} or {.path}=value"},
		"a path that is no path": {"jsonpath={.status[}", "jsonpath"},
		"a condition of no type": {"condition=", "want condition=Type"},
		"a condition of no status": {
			"condition=Ready=", "want condition=Type",
		},
		"one bad expression of two": {`["condition=Ready", "Ready"]`, "want jsonpath={PATH}=VALUE or condition=TYPE"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseWaitFor(test.waitFor)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

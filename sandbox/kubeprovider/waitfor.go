package kubeprovider

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// annotationWaitFor has the conditions that an object is waited for: one expression, or several in a JSON array that
// must all hold. An expression is jsonpath={.path}, jsonpath={.path}=value, condition=Type or condition=Type=Status.
const annotationWaitFor = "pulumi.com/waitFor"

// unmet returns the expressions in the annotation of an object that do not hold.
func unmet(obj *unstructured.Unstructured) ([]string, error) {
	annotation := obj.GetAnnotations()[annotationWaitFor]
	var expressions, unmet []string
	if json.Unmarshal([]byte(annotation), &expressions) != nil && annotation != "" {
		expressions = []string{annotation}
	}
	for _, expression := range expressions {
		met, err := holds(expression, obj)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %q: %w", annotationWaitFor, expression, err)
		}
		if !met {
			unmet = append(unmet, expression)
		}
	}
	return unmet, nil
}

func holds(expression string, obj *unstructured.Unstructured) (bool, error) {
	kind, rest, _ := strings.Cut(expression, "=")
	if kind == "condition" {
		conditionType, status, given := strings.Cut(rest, "=")
		if !given {
			status = "True"
		}
		return hasCondition(obj, conditionType, status), nil
	}
	end := strings.LastIndexByte(rest, '}') + 1
	if kind != "jsonpath" || !strings.HasPrefix(rest, "{") || end == 0 {
		return false, errors.New("want jsonpath={PATH}=VALUE or condition=TYPE")
	}
	template := rest[:end]
	want, equals := strings.CutPrefix(rest[end:], "=")
	path := jsonpath.New("waitFor").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return false, err
	}
	// An index beyond the end of a list is an error, missing keys allowed or not: the element may still come.
	results, err := path.FindResults(obj.Object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return false, nil
	}
	found := results[0][0].Interface()
	switch found.(type) {
	case map[string]any, []any:
		if equals {
			return false, fmt.Errorf("jsonpath %s selects a whole object or list, which has no value to compare with %q", template, want)
		}
	}
	return found != nil && (!equals || fmt.Sprint(found) == want), nil
}

// hasCondition says whether an object has a condition in its status with this
// status, and not one of an older generation.
func hasCondition(obj *unstructured.Unstructured, conditionType, status string) bool {
	for _, condition := range conditionsOf(obj) {
		if !strings.EqualFold(fmt.Sprint(condition["type"]), conditionType) {
			continue
		}
		observed, ok, _ := unstructured.NestedInt64(condition, "observedGeneration")
		if !ok {
			observed, ok, _ = unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
		}
		return (!ok || observed >= obj.GetGeneration()) && strings.EqualFold(fmt.Sprint(condition["status"]), status)
	}
	return false
}

func conditionsOf(obj *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var conditions []map[string]any
	for _, item := range list {
		if condition, ok := item.(map[string]any); ok {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

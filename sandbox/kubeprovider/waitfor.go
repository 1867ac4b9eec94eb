package kubeprovider

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// annotationWaitFor has the conditions that an object is waited for: one expression, or several in a JSON
// array that must all hold. An expression is jsonpath={.path}, jsonpath={.path}=value, condition=Type or
// condition=Type=Status.
const annotationWaitFor = "pulumi.com/waitFor"

// waitConditions are the expressions of the annotation.
type waitConditions []struct {
	text  string
	holds func(*unstructured.Unstructured) (bool, error)
}

// met reports whether all hold, and which do not.
func (w waitConditions) met(obj *unstructured.Unstructured) (bool, string, error) {
	var unmet []string
	for _, condition := range w {
		holds, err := condition.holds(obj)
		if err != nil {
			return false, "", err
		}
		if !holds {
			unmet = append(unmet, condition.text)
		}
	}
	return len(unmet) == 0, "waiting for " + strings.Join(unmet, ", "), nil
}

func parseWaitFor(annotation string) (waitConditions, error) {
	if annotation == "" {
		return nil, nil
	}
	var expressions []string
	if json.Unmarshal([]byte(annotation), &expressions) != nil {
		expressions = []string{annotation}
	}
	conditions := make(waitConditions, len(expressions))
	for i, expression := range expressions {
		holds, err := parseExpression(expression)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %q: %w", annotationWaitFor, expression, err)
		}
		conditions[i].text, conditions[i].holds = expression, holds
	}
	return conditions, nil
}

func parseExpression(expression string) (func(*unstructured.Unstructured) (bool, error), error) {
	kind, rest, _ := strings.Cut(expression, "=")
	if kind == "condition" {
		conditionType, status, given := strings.Cut(rest, "=")
		if !given {
			status = "True"
		}
		return func(obj *unstructured.Unstructured) (bool, error) {
			return hasCondition(obj, conditionType, status), nil
		}, nil
	}
	end := strings.LastIndexByte(rest, '}') + 1
	if kind != "jsonpath" || !strings.HasPrefix(rest, "{") || end == 0 {
		return nil, fmt.Errorf("want jsonpath={PATH}=VALUE or condition=TYPE")
	}
	template := rest[:end]
	want, equals := strings.CutPrefix(rest[end:], "=")
	if err := jsonpath.New("waitFor").Parse(template); err != nil {
		return nil, err
	}
	return func(obj *unstructured.Unstructured) (bool, error) {
		// A JSONPath keeps state while it runs, so each use parses its own.
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
	}, nil
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

package readiness

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// A waitCondition is one expression of a pulumi.com/waitFor annotation.
type waitCondition struct {
	text string
	met  func(*unstructured.Unstructured) (bool, error)
}

// parseWaitFor reads a pulumi.com/waitFor annotation: one expression, or several in a JSON array
// that must all hold. An expression is
// jsonpath={.path}, jsonpath={.path}=value, condition=Type or
// condition=Type=Status.
func parseWaitFor(annotation string) ([]waitCondition, error) {
	var expressions []string
	if json.Unmarshal([]byte(annotation), &expressions) != nil {
		expressions = []string{annotation}
	}
	if len(expressions) == 0 {
		return nil, errors.New("at least one expression is required")
	}
	conditions := make([]waitCondition, 0, len(expressions))
	for _, expression := range expressions {
		met, err := parseExpression(expression)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, waitCondition{expression, met})
	}
	return conditions, nil
}

func parseExpression(expression string) (func(*unstructured.Unstructured) (bool, error), error) {
	if rest, ok := strings.CutPrefix(expression, "jsonpath="); ok {
		return parseJSONPath(rest)
	}
	if rest, ok := strings.CutPrefix(expression, "condition="); ok {
		conditionType, status, given := strings.Cut(rest, "=")
		if !given {
			status = "True"
		}
		if conditionType == "" || status == "" {
			return nil, fmt.Errorf("%q: want condition=Type or condition=Type=Status", expression)
		}
		return func(obj *unstructured.Unstructured) (bool, error) {
			return hasCondition(obj, conditionType, status), nil
		}, nil
	}
	return nil, fmt.Errorf("%q: want jsonpath={PATH}=VALUE or condition=TYPE", expression)
}

func parseJSONPath(text string) (func(*unstructured.Unstructured) (bool, error), error) {
	template, want, equals, err := splitJSONPath(text)
	if err != nil {
		return nil, err
	}
	if err := jsonpath.New("waitFor").Parse(template); err != nil {
		return nil, fmt.Errorf("jsonpath %s: %w", template, err)
	}
	return func(obj *unstructured.Unstructured) (bool, error) {
		// A JSONPath keeps state while it runs, so each use parses its own.
		path := jsonpath.New("waitFor").AllowMissingKeys(true)
		if err := path.Parse(template); err != nil {
			return false, fmt.Errorf("jsonpath %s: %w", template, err)
		}
		results, err := path.FindResults(obj.Object)
		if err != nil {
			// An index beyond the end of a list is an error, missing keys allowed
			// or not: the element may still come.
			return false, nil
		}
		if len(results) == 0 || len(results[0]) == 0 {
			return false, nil
		}
		found := results[0][0].Interface()
		if !equals {
			return found != nil, nil
		}
		switch found.(type) {
		case map[string]any, []any:
			return false, fmt.Errorf("jsonpath %s selects a whole object or list, which has no value to compare with %q",
				template, want)
		}
		return found != nil && fmt.Sprint(found) == want, nil
	}, nil
}

// splitJSONPath splits {.path}=value at the brace that closes the path. The path may contain braces
// and equal signs, in quotes or in filters.
func splitJSONPath(text string) (template, want string, equals bool, err error) {
	if !strings.HasPrefix(text, "{") {
		return "", "", false, fmt.Errorf("jsonpath %q: the path must be in braces, as in {.status.phase}", text)
	}
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth > 0 {
				continue
			}
			template, rest := text[:i+1], text[i+1:]
			want, equals = strings.CutPrefix(rest, "=")
			if rest != "" && (!equals || want == "") {
				return "", "", false, fmt.Errorf("jsonpath %q: want {.path} or {.path}=value", text)
			}
			return template, want, equals, nil
		}
	}
	return "", "", false, fmt.Errorf("jsonpath %q: a brace is not closed", text)
}

// hasCondition says whether an object has a condition in its status with this
// status, and not one of an older generation.
func hasCondition(obj *unstructured.Unstructured, conditionType, status string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok {
			continue
		}
		if t, _ := condition["type"].(string); !strings.EqualFold(t, conditionType) {
			continue
		}
		if observed, ok := observedGeneration(obj, condition); ok && observed < obj.GetGeneration() {
			return false
		}
		s, _ := condition["status"].(string)
		return strings.EqualFold(s, status)
	}
	return false
}

func observedGeneration(obj *unstructured.Unstructured, condition map[string]any) (int64, bool) {
	if observed, ok, _ := unstructured.NestedInt64(condition, "observedGeneration"); ok {
		return observed, true
	}
	observed, ok, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return observed, ok
}

// Package merge lays bodies of requests and answers over each other.
package merge

import (
	"maps"
	"strings"
)

// body is a JSON object.
type body = map[string]any

// Overlay lays a request over the fields that a service sets by itself. As in the recorded answers,
// it omits empty texts and lists, and keeps a message without content. GKE also omits false, 0 and
// the first value of an enumeration.
func Overlay(base, request body, isZero func(any) bool) body {
	result := maps.Clone(base)
	if result == nil {
		result = body{}
	}
	for name, value := range request {
		switch value := value.(type) {
		case nil:
			delete(result, name)
		case body:
			below, _ := result[name].(body)
			result[name] = Overlay(below, value, isZero)
		case []any:
			delete(result, name)
			if len(value) > 0 {
				result[name] = overlayElements(value, isZero)
			}
		default:
			if isZero(value) {
				delete(result, name)
			} else {
				result[name] = value
			}
		}
	}
	return result
}

func overlayElements(list []any, isZero func(any) bool) []any {
	result := []any{}
	for _, element := range list {
		if body, ok := element.(body); ok {
			element = Overlay(nil, body, isZero)
		}
		result = append(result, element)
	}
	return result
}

// IsEmpty reports whether a value is one that services omit.
func IsEmpty(value any) bool { return value == "" }

// IsZero reports whether a value is one that GKE omits.
func IsZero(value any) bool {
	text, isText := value.(string)
	return value == false || value == 0.0 || isText && (text == "" || strings.HasSuffix(text, "_UNSPECIFIED"))
}

// Beyond returns the fields of an answer that are absent from its request.
func Beyond(answer, request body) body {
	result := body{}
	for name, value := range answer {
		asked, said := request[name]
		below, isObject := value.(body)
		askedBelow, _ := asked.(body)
		switch {
		case !said:
			result[name] = value
		case isObject:
			if more := Beyond(below, askedBelow); len(more) > 0 {
				result[name] = more
			}
		}
	}
	return result
}

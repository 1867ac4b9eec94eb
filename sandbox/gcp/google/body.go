package google

import (
	"encoding/json"
	"maps"
	"strings"
)

// Body is a JSON object of a request or an answer.
type Body = map[string]any

// Clone copies a value of JSON, with numbers as JSON has them.
func Clone[T any](value T) T {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // bodies hold nothing but JSON
	}
	var copied T
	if err := json.Unmarshal(text, &copied); err != nil {
		panic(err)
	}
	return copied
}

// Lookup finds the value at a path of names with dots between them.
func Lookup(body Body, path string) (any, bool) {
	var value any = body
	for _, name := range strings.Split(path, ".") {
		object, ok := value.(Body)
		if !ok {
			return nil, false
		}
		if value, ok = object[name]; !ok {
			return nil, false
		}
	}
	return value, true
}

func text(body Body, path string) string {
	value, _ := Lookup(body, path)
	found, _ := value.(string)
	return found
}

func number(body Body, path string) float64 {
	value, _ := Lookup(body, path)
	found, _ := value.(float64)
	return found
}

func truth(body Body, path string) bool {
	value, _ := Lookup(body, path)
	return value == true
}

func object(body Body, path string) Body {
	value, _ := Lookup(body, path)
	found, _ := value.(Body)
	return found
}

func list(body Body, path string) []any {
	value, _ := Lookup(body, path)
	found, _ := value.([]any)
	return found
}

func has(body Body, path string) bool {
	_, found := Lookup(body, path)
	return found
}

// Set puts a value at a path, and makes the objects on the way.
func Set(body Body, path string, value any) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		next, ok := body[name].(Body)
		if !ok {
			next = Body{}
			body[name] = next
		}
		body = next
	}
	body[names[len(names)-1]] = value
}

// fill puts a value at a path that has none.
func fill(body Body, path string, value any) {
	if !has(body, path) {
		Set(body, path, value)
	}
}

func remove(body Body, path string) {
	if parent, name, below := cutLast(path); below {
		delete(object(body, parent), name)
	} else {
		delete(body, path)
	}
}

func cutLast(path string) (parent, name string, below bool) {
	i := strings.LastIndex(path, ".")
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// overlay lays a request over what a service sets by itself. As in the answers
// that are recorded, empty texts and lists are left out, and a message without
// content stays. GKE leaves out false, 0 and the first value of an enumeration too.
func overlay(base, request Body, isZero func(any) bool) Body {
	result := maps.Clone(base)
	if result == nil {
		result = Body{}
	}
	for name, value := range request {
		switch value := value.(type) {
		case nil:
			delete(result, name)
		case Body:
			below, _ := result[name].(Body)
			result[name] = overlay(below, value, isZero)
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
		if body, ok := element.(Body); ok {
			element = overlay(nil, body, isZero)
		}
		result = append(result, element)
	}
	return result
}

func isEmpty(value any) bool { return value == "" }

func isZero(value any) bool {
	text, isText := value.(string)
	return value == false || value == 0.0 || isText && (text == "" || strings.HasSuffix(text, "_UNSPECIFIED"))
}

// beyond is what an answer holds that its request did not say.
func beyond(answer, request Body) Body {
	result := Body{}
	for name, value := range answer {
		asked, said := request[name]
		below, isObject := value.(Body)
		askedBelow, _ := asked.(Body)
		switch {
		case !said:
			result[name] = value
		case isObject:
			if more := beyond(below, askedBelow); len(more) > 0 {
				result[name] = more
			}
		}
	}
	return result
}

func segment(path string) string { return path[strings.LastIndex(path, "/")+1:] }

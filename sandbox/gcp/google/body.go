package google

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	value, found, err := unstructured.NestedFieldNoCopy(body, strings.Split(path, ".")...)
	return value, found && err == nil
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
	unstructured.RemoveNestedField(body, strings.Split(path, ".")...)
}

func segment(path string) string { return path[strings.LastIndex(path, "/")+1:] }

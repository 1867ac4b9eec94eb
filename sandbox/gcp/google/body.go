package google

import (
	"encoding/json"
	"maps"
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

// at returns the value at a path, or the zero value if there is none of its type.
func at[T any](body Body, path string) T {
	value, _ := Lookup(body, path)
	found, _ := value.(T)
	return found
}

// Text returns the string at a path, or "".
func Text(body Body, path string) string { return at[string](body, path) }

// Number returns the number at a path, or 0.
func Number(body Body, path string) int { return int(at[float64](body, path)) }

// Truth reports whether there is true at a path.
func Truth(body Body, path string) bool { return at[bool](body, path) }

// Object returns the object at a path, or nil.
func Object(body Body, path string) Body { return at[Body](body, path) }

// Objects returns the objects in the list at a path.
func Objects(body Body, path string) []Body { return elements[Body](body, path) }

// Texts returns the strings in the list at a path.
func Texts(body Body, path string) []string { return elements[string](body, path) }

func elements[T any](body Body, path string) []T {
	var found []T
	for _, element := range at[[]any](body, path) {
		if element, ok := element.(T); ok {
			found = append(found, element)
		}
	}
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

func remove(body Body, paths ...string) {
	for _, path := range paths {
		unstructured.RemoveNestedField(body, strings.Split(path, ".")...)
	}
}

// Segment returns the part of a link or a name after the last slash.
func Segment(link string) string { return link[strings.LastIndex(link, "/")+1:] }

// Element returns the part of a name after a collection: the zone after "zones".
func Element(name, collection string) string {
	_, after, _ := strings.Cut("/"+name, "/"+collection+"/")
	first, _, _ := strings.Cut(after, "/")
	return first
}

// overlay lays a request over the fields that a service sets by itself. As in the recorded answers, it omits empty
// texts and lists, and keeps a message without content. GKE also omits false, 0 and the first value of an enumeration.
func overlay(base, request Body, gke bool) Body {
	result := maps.Clone(base)
	if result == nil {
		result = Body{}
	}
	for name, value := range request {
		switch value := value.(type) {
		case Body:
			below, _ := result[name].(Body)
			result[name] = overlay(below, value, gke)
		case []any:
			list := []any{}
			for _, element := range value {
				if body, ok := element.(Body); ok {
					element = overlay(nil, body, gke)
				}
				list = append(list, element)
			}
			result[name] = list
			if len(list) == 0 {
				delete(result, name)
			}
		default:
			result[name] = value
			if value == nil || value == "" || gke && isZero(value) {
				delete(result, name)
			}
		}
	}
	return result
}

func isZero(value any) bool {
	text, _ := value.(string)
	return value == false || value == 0.0 || strings.HasSuffix(text, "_UNSPECIFIED")
}

// beyond returns the fields of an answer that are absent from its request, without texts that
// hold a placeholder: they depend on the resource.
func beyond(answer, request Body) Body {
	result := Body{}
	for name, value := range answer {
		asked, said := request[name]
		if below, isObject := value.(Body); isObject {
			askedBelow, _ := asked.(Body)
			if more := beyond(below, askedBelow); !said || len(more) > 0 {
				result[name] = more
			}
		} else if text, _ := value.(string); !said && !strings.Contains(text, "${") {
			result[name] = value
		}
	}
	return result
}

package kubernetes

import (
	"encoding/base64"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bookkeeping is the metadata that the API server keeps for itself.
var bookkeeping = []string{
	"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink",
}

// contentOf returns the part of an object that a program can ask for: all but
// its status and the API server's bookkeeping.
func contentOf(obj *unstructured.Unstructured) map[string]any {
	content := obj.DeepCopy().Object
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, field := range bookkeeping {
			delete(metadata, field)
		}
	}
	return content
}

// same says whether two objects differ in nothing that a program can ask for.
func same(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(contentOf(a), contentOf(b))
}

// project returns input with each value that drifted replaced by the live one.
// want is what the API server makes of input: it writes values in its own form
// and adds to them, so live is compared with want, not with input. Where want
// is nil, every value that live has is taken for drift.
func project(input, live, want any) any {
	if reflect.DeepEqual(live, want) {
		return input
	}
	switch input := input.(type) {
	case map[string]any:
		liveMap, ok := live.(map[string]any)
		if !ok {
			return live
		}
		wantMap, _ := want.(map[string]any)
		out := make(map[string]any, len(input))
		for key, value := range input {
			liveValue, inLive := liveMap[key]
			wantValue, inWant := wantMap[key]
			switch {
			case inLive:
				out[key] = project(value, liveValue, wantValue)
			case !inWant:
				out[key] = value // the API server never had it in this form
			}
		}
		return out
	case []any:
		liveList, ok := live.([]any)
		if !ok {
			return live
		}
		wantList, _ := want.([]any)
		return projectList(input, liveList, wantList)
	default:
		return live
	}
}

// projectList pairs elements by name where they have one, as the API server
// does in most lists of objects, and by position otherwise.
func projectList(input, live, want []any) any {
	named := allNamed(input) && allNamed(live)
	if !named && len(input) != len(live) {
		return live
	}
	out := make([]any, 0, len(input))
	for i, value := range input {
		var liveValue, wantValue any
		inLive := true
		if named {
			liveValue, inLive = byName(live, value)
			wantValue, _ = byName(want, value)
		} else {
			liveValue = live[i]
			if len(want) == len(live) {
				wantValue = want[i]
			}
		}
		if inLive {
			out = append(out, project(value, liveValue, wantValue))
		}
	}
	return out
}

func allNamed(list []any) bool {
	for _, element := range list {
		if _, ok := nameOf(element); !ok {
			return false
		}
	}
	return true
}

func byName(list []any, like any) (any, bool) {
	name, _ := nameOf(like)
	for _, element := range list {
		if n, ok := nameOf(element); ok && n == name {
			return element, true
		}
	}
	return nil, false
}

func nameOf(element any) (string, bool) {
	m, _ := element.(map[string]any)
	name, ok := m["name"].(string)
	return name, ok
}

// decodeStringData adds the stringData that a Secret was given with these keys,
// so that it compares with inputs that have it.
func decodeStringData(content map[string]any, keys map[string]any) {
	data, _ := content["data"].(map[string]any)
	decoded := map[string]any{}
	for key := range keys {
		if text, ok := data[key].(string); ok {
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
				decoded[key] = string(plain)
			}
		}
	}
	content["stringData"] = decoded
}

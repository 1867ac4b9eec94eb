package kubeprovider

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// errUnknown is the error of a value that only an update will know.
var errUnknown = errors.New("value is not known yet")

// objectOf makes the object that a resource's inputs describe.
func objectOf(inputs resource.PropertyMap) (*unstructured.Unstructured, error) {
	if inputs.ContainsUnknowns() {
		return nil, errUnknown
	}
	obj := &unstructured.Unstructured{Object: plain(inputs)}
	if isSecret(obj) {
		encodeStringData(obj)
	}
	return obj, nil
}

// plain turns properties into JSON. Nulls are left out of objects: applying one would claim the field.
func plain(properties resource.PropertyMap) map[string]any {
	given := maps.Clone(properties)
	maps.DeleteFunc(given, func(_ resource.PropertyKey, value resource.PropertyValue) bool { return value.IsNull() })
	return given.MapRepl(nil, func(value resource.PropertyValue) (any, bool) {
		if value.IsObject() {
			return plain(value.ObjectValue()), true
		}
		// Kubernetes has integers, and Pulumi only has floating-point numbers.
		number, _ := value.V.(float64)
		return int64(number), value.IsNumber() && number == math.Trunc(number) && math.Abs(number) <= 1<<53
	})
}

// outputsOf makes a resource's outputs: the live object, without the record of who owns which field.
func outputsOf(live *unstructured.Unstructured, inputs resource.PropertyMap) resource.PropertyMap {
	live = live.DeepCopy()
	live.SetManagedFields(nil)
	outputs := resource.NewPropertyMapFromMap(live.Object)
	// The API server takes stringData and never returns it.
	if v, ok := inputs["stringData"]; ok && isSecret(live) {
		outputs["stringData"] = v
	}
	markSecret(live, outputs)
	return outputs
}

// markSecret makes the content of a Secret a secret of Pulumi's.
func markSecret(obj *unstructured.Unstructured, properties resource.PropertyMap) {
	for _, key := range []resource.PropertyKey{"data", "stringData"} {
		if v, ok := properties[key]; ok && isSecret(obj) && !v.IsSecret() {
			properties[key] = resource.MakeSecret(v)
		}
	}
}

func isSecret(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind() == schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
}

// encodeStringData moves a Secret's stringData into its data, as the API server does, so that the fields that are
// applied are the ones that exist: only these can be compared, and removed when the inputs no longer have them.
func encodeStringData(obj *unstructured.Unstructured) {
	plain, ok := obj.Object["stringData"].(map[string]any)
	if !ok {
		return
	}
	delete(obj.Object, "stringData")
	data, _ := obj.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range plain {
		data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
	}
	obj.Object["data"] = data
}

// idOf returns the resource ID of an object: its name, after its namespace if it has one.
func idOf(obj *unstructured.Unstructured) resource.ID {
	if obj.GetNamespace() == "" {
		return resource.ID(obj.GetName())
	}
	return resource.ID(obj.GetNamespace() + "/" + obj.GetName())
}

// describe names an object in messages, as in "StatefulSet persia/nn-worker".
func describe(obj *unstructured.Unstructured) string { return obj.GetKind() + " " + string(idOf(obj)) }

// bookkeeping is the metadata that the API server keeps for itself.
var bookkeeping = []string{
	"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
}

// normalize writes an object as Kubernetes' Go types write it, so that two ways to say the same do not differ: a
// quantity of 1000m is 1. Fields that the types do not have are dropped. A kind without a type stays as it is.
func normalize(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	converter := runtime.DefaultUnstructuredConverter
	typed, _ := scheme.Scheme.New(obj.GroupVersionKind())
	if _, ok := typed.(metav1.Object); ok && !isSecret(obj) && converter.FromUnstructured(obj.Object, typed) == nil {
		if content, err := converter.ToUnstructured(typed); err == nil {
			out.Object = prune(content, obj.Object).(map[string]any)
		}
	}
	if metadata, ok := out.Object["metadata"].(map[string]any); ok {
		for _, field := range bookkeeping {
			delete(metadata, field)
		}
	}
	delete(out.Object, "status")
	return out
}

// prune returns the part of a value that has the shape of like: the fields that
// like has, with the values of content. Lists are paired by position.
func prune(value, like any) any {
	switch value := value.(type) {
	case map[string]any:
		pattern, ok := like.(map[string]any)
		if !ok {
			return value
		}
		out := map[string]any{}
		for key := range pattern {
			if inner, ok := value[key]; ok {
				out[key] = prune(inner, pattern[key])
			}
		}
		return out
	case []any:
		pattern, ok := like.([]any)
		if !ok || len(value) > 0 && len(pattern) > 0 && reflect.TypeOf(value[0]) != reflect.TypeOf(pattern[0]) {
			return value
		}
		out := make([]any, min(len(value), len(pattern)))
		for i := range out {
			out[i] = prune(value[i], pattern[i])
		}
		return out
	}
	return value
}

// liveLike returns the part of a live object that a resource's object speaks of.
func liveLike(live, obj *unstructured.Unstructured) resource.PropertyMap {
	return resource.NewPropertyMapFromMap(prune(live.Object, normalize(obj).Object).(map[string]any))
}

package object

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Bookkeeping is the metadata that the API server keeps for itself.
var Bookkeeping = []string{
	"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
}

// Normalize writes an object as Kubernetes' Go types write it, so that two ways
// to say the same do not differ: a quantity of 1000m is 1. Fields that the types
// do not have are dropped. A kind without a type stays as it is.
func Normalize(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	if typed, err := scheme.Scheme.New(obj.GroupVersionKind()); err == nil && !IsSecret(obj) {
		if content, err := throughType(obj.Object, typed); err == nil {
			out.Object = prune(content, obj.Object)
		}
	}
	if metadata, ok := out.Object["metadata"].(map[string]any); ok {
		for _, field := range Bookkeeping {
			delete(metadata, field)
		}
	}
	delete(out.Object, "status")
	return out
}

func throughType(content map[string]any, typed runtime.Object) (map[string]any, error) {
	if _, ok := typed.(metav1.Object); !ok {
		return content, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
}

// prune returns the part of content that has the shape of like: the fields that
// like has, with the values of content. Lists are paired by position.
func prune(content, like map[string]any) map[string]any {
	out := map[string]any{}
	for key, pattern := range like {
		if value, ok := content[key]; ok {
			out[key] = pruneValue(value, pattern)
		}
	}
	return out
}

func pruneValue(value, like any) any {
	switch value := value.(type) {
	case map[string]any:
		if pattern, ok := like.(map[string]any); ok {
			return prune(value, pattern)
		}
	case []any:
		if pattern, ok := like.([]any); ok {
			return pruneList(value, pattern)
		}
	}
	return value
}

func pruneList(list, like []any) []any {
	if len(list) == 0 || len(like) == 0 {
		return []any{}
	}
	if reflect.TypeOf(list[0]) != reflect.TypeOf(like[0]) {
		return list
	}
	n := min(len(list), len(like))
	out := make([]any, 0, n)
	for i := range n {
		out = append(out, pruneValue(list[i], like[i]))
	}
	return out
}

// LiveLike returns the part of a live object that a resource's inputs speak of.
func LiveLike(live *unstructured.Unstructured, inputs resource.PropertyMap) (resource.PropertyMap, error) {
	obj, err := Of(inputs)
	if err != nil {
		return nil, err
	}
	return resource.NewPropertyMapFromMap(prune(live.Object, Normalize(obj).Object)), nil
}

package object

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrUnknown is the error of a value that only an update will know.
var ErrUnknown = errors.New("value is not known yet")

// Of makes the object that a resource's inputs describe.
func Of(inputs resource.PropertyMap) (*unstructured.Unstructured, error) {
	content, err := Plain(Reveal(inputs))
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{Object: content}
	if IsSecret(obj) {
		encodeStringData(obj)
	}
	return obj, nil
}

// Plain turns revealed properties into JSON values. Nulls are left out: applying one
// would claim the field.
func Plain(properties resource.PropertyMap) (map[string]any, error) {
	out := make(map[string]any, len(properties))
	for key, property := range properties {
		if property.IsNull() {
			continue
		}
		value, err := plain(property)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out[string(key)] = value
	}
	return out, nil
}

func plain(v resource.PropertyValue) (any, error) {
	switch {
	case v.IsNull():
		return nil, nil
	case v.IsComputed():
		return nil, ErrUnknown
	case v.IsBool(), v.IsString():
		return v.V, nil
	case v.IsNumber():
		// Kubernetes has integers, and Pulumi only has floating-point numbers.
		if n := v.NumberValue(); n == math.Trunc(n) && math.Abs(n) <= 1<<53 {
			return int64(n), nil
		}
		return v.NumberValue(), nil
	case v.IsArray():
		out := make([]any, 0, len(v.ArrayValue()))
		for i, element := range v.ArrayValue() {
			value, err := plain(element)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out = append(out, value)
		}
		return out, nil
	case v.IsObject():
		return Plain(v.ObjectValue())
	default:
		return nil, fmt.Errorf("%s is no value of a Kubernetes object", v.TypeString())
	}
}

// Outputs makes a resource's outputs: the live object, without the record of
// who owns which field, secret wherever the inputs are.
func Outputs(live *unstructured.Unstructured, inputs resource.PropertyMap) resource.PropertyMap {
	live = live.DeepCopy()
	live.SetManagedFields(nil)
	outputs := resource.NewPropertyMapFromMap(live.Object)
	if IsSecret(live) {
		// The API server takes stringData and never returns it.
		if v, ok := inputs["stringData"]; ok {
			outputs["stringData"] = v
		}
		MarkSecret(outputs)
	}
	Conceal(outputs, inputs)
	return outputs
}

// MarkSecret makes the content of a Secret a secret of Pulumi's.
func MarkSecret(properties resource.PropertyMap) {
	for _, key := range []resource.PropertyKey{"data", "stringData"} {
		if v, ok := properties[key]; ok && !v.IsSecret() {
			properties[key] = resource.MakeSecret(v)
		}
	}
}

func IsSecret(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind() == schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
}

// encodeStringData moves a Secret's stringData into its data, as the API server
// does, so that the fields that are applied are the ones that exist: only these
// can be compared, and removed when the inputs no longer have them.
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

// InputsID returns the resource ID of the object that a resource's inputs describe.
func InputsID(inputs resource.PropertyMap) (resource.ID, error) {
	obj, err := Of(inputs)
	if err != nil {
		return "", err
	}
	return ID(obj), nil
}

// ID returns the resource ID of an object: its name, after its namespace if it has
// one.
func ID(obj *unstructured.Unstructured) resource.ID {
	if obj.GetNamespace() == "" {
		return resource.ID(obj.GetName())
	}
	return resource.ID(obj.GetNamespace() + "/" + obj.GetName())
}

// Describe names an object in messages, as in "StatefulSet persia/nn-worker".
func Describe(obj *unstructured.Unstructured) string {
	return obj.GetKind() + " " + string(ID(obj))
}

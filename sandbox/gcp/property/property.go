// Package property reads the inputs of a resource. It skips values that are missing or not known
// yet.
package property

import (
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Text returns the string at name, or "".
func Text(inputs resource.PropertyMap, name string) string {
	if value := inputs[resource.PropertyKey(name)]; value.IsString() {
		return value.StringValue()
	}
	return ""
}

// Number returns the number at name, and whether there is one.
func Number(inputs resource.PropertyMap, name string) (int, bool) {
	value := inputs[resource.PropertyKey(name)]
	if !value.IsNumber() {
		return 0, false
	}
	return int(value.NumberValue()), true
}

// NumberOr returns the number at name, or a default.
func NumberOr(inputs resource.PropertyMap, name string, otherwise int) int {
	if n, ok := Number(inputs, name); ok {
		return n
	}
	return otherwise
}

// Truth returns the boolean at name, or a default.
func Truth(inputs resource.PropertyMap, name string, otherwise bool) bool {
	if value := inputs[resource.PropertyKey(name)]; value.IsBool() {
		return value.BoolValue()
	}
	return otherwise
}

// Object returns the object at name, or an empty one.
func Object(inputs resource.PropertyMap, name string) resource.PropertyMap {
	if value := inputs[resource.PropertyKey(name)]; value.IsObject() {
		return value.ObjectValue()
	}
	return nil
}

// Objects returns the objects in the list at name.
func Objects(inputs resource.PropertyMap, name string) []resource.PropertyMap {
	var elements []resource.PropertyMap
	for _, value := range List(inputs, name) {
		if value.IsObject() {
			elements = append(elements, value.ObjectValue())
		}
	}
	return elements
}

// Texts returns the strings in the list at name.
func Texts(inputs resource.PropertyMap, name string) []string {
	var elements []string
	for _, value := range List(inputs, name) {
		if value.IsString() {
			elements = append(elements, value.StringValue())
		}
	}
	return elements
}

func List(inputs resource.PropertyMap, name string) []resource.PropertyValue {
	if value := inputs[resource.PropertyKey(name)]; value.IsArray() {
		return value.ArrayValue()
	}
	return nil
}

// Expand puts properties into a template, such as the template of an identifier.
func Expand(template string, inputs resource.PropertyMap) string {
	return os.Expand(template, func(name string) string { return Text(inputs, name) })
}

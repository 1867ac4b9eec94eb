package gcp

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// The functions below leave out what is not there, and what is not known yet.

// text is the string at name, or "".
func text(inputs resource.PropertyMap, name string) string {
	if value := inputs[resource.PropertyKey(name)]; value.IsString() {
		return value.StringValue()
	}
	return ""
}

// number is the number at name, and whether there is one.
func number(inputs resource.PropertyMap, name string) (int, bool) {
	value := inputs[resource.PropertyKey(name)]
	if !value.IsNumber() {
		return 0, false
	}
	return int(value.NumberValue()), true
}

// numberOr is the number at name, or otherwise.
func numberOr(inputs resource.PropertyMap, name string, otherwise int) int {
	if n, ok := number(inputs, name); ok {
		return n
	}
	return otherwise
}

// truth is the boolean at name, or otherwise.
func truth(inputs resource.PropertyMap, name string, otherwise bool) bool {
	if value := inputs[resource.PropertyKey(name)]; value.IsBool() {
		return value.BoolValue()
	}
	return otherwise
}

// object is the object at name, or an empty one.
func object(inputs resource.PropertyMap, name string) resource.PropertyMap {
	if value := inputs[resource.PropertyKey(name)]; value.IsObject() {
		return value.ObjectValue()
	}
	return nil
}

// objects are the objects in the list at name.
func objects(inputs resource.PropertyMap, name string) []resource.PropertyMap {
	var elements []resource.PropertyMap
	for _, value := range list(inputs, name) {
		if value.IsObject() {
			elements = append(elements, value.ObjectValue())
		}
	}
	return elements
}

// texts are the strings in the list at name.
func texts(inputs resource.PropertyMap, name string) []string {
	var elements []string
	for _, value := range list(inputs, name) {
		if value.IsString() {
			elements = append(elements, value.StringValue())
		}
	}
	return elements
}

func list(inputs resource.PropertyMap, name string) []resource.PropertyValue {
	if value := inputs[resource.PropertyKey(name)]; value.IsArray() {
		return value.ArrayValue()
	}
	return nil
}

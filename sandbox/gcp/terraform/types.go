package terraform

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// mistyped returns the paths of the inputs whose types differ from the schema's, with the right
// types. The bridge would convert some of them; the SDK of the program never creates such inputs.
func mistyped(of map[string]*schema.Schema, inputs resource.PropertyMap) []string {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		field := terraformName(of, string(key))
		if field == "" || resource.IsInternalPropertyKey(key) {
			continue // said elsewhere
		}
		for _, found := range mistypedValue(of[field], inputs[key]) {
			wrong = append(wrong, string(key)+found)
		}
	}
	return wrong
}

func mistypedValue(s *schema.Schema, value resource.PropertyValue) []string {
	switch {
	case value.IsSecret():
		return mistypedValue(s, value.SecretValue().Element)
	case value.IsOutput() && value.OutputValue().Known:
		return mistypedValue(s, value.OutputValue().Element)
	case value.IsOutput(), value.IsComputed(), value.IsNull():
		return nil
	case isList(s):
		return mistypedList(s, value)
	case s.Type == schema.TypeList, s.Type == schema.TypeSet:
		return mistypedElement(s, value)
	default:
		return mistypedScalar(s.Type, value)
	}
}

func mistypedList(s *schema.Schema, value resource.PropertyValue) []string {
	if !value.IsArray() {
		return []string{" is not a list"}
	}
	var wrong []string
	for i, element := range value.ArrayValue() {
		for _, found := range mistypedElement(s, element) {
			wrong = append(wrong, fmt.Sprintf("[%d]%s", i, found))
		}
	}
	return wrong
}

// mistypedElement checks one of a list, or the only one of a block.
func mistypedElement(s *schema.Schema, value resource.PropertyValue) []string {
	fields := nested(s)
	if fields == nil {
		return mistypedValue(s.Elem.(*schema.Schema), value)
	}
	if !value.IsObject() {
		return []string{" is not an object"}
	}
	var wrong []string
	for _, found := range mistyped(fields, value.ObjectValue()) {
		wrong = append(wrong, "."+found)
	}
	return wrong
}

func mistypedScalar(wanted schema.ValueType, value resource.PropertyValue) []string {
	ok := true
	switch wanted {
	case schema.TypeBool:
		ok = value.IsBool()
	case schema.TypeInt:
		ok = value.IsNumber() && value.NumberValue() == float64(int(value.NumberValue()))
	case schema.TypeFloat:
		ok = value.IsNumber()
	case schema.TypeString:
		ok = value.IsString()
	case schema.TypeMap:
		ok = value.IsObject()
	}
	if ok {
		return nil
	}
	return []string{fmt.Sprintf(" is not a %s", wanted)}
}

package terraform

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// toTerraform converts what Pulumi holds of a resource. Names that the schema does
// not know are left out, and given back.
func toTerraform(fields map[string]*schema.Schema, properties resource.PropertyMap) (object map[string]any, unknown []string) {
	names := map[string]string{}
	for field := range fields {
		names[pulumiName(fields, field)] = field
	}
	object = map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if key == "id" || resource.IsInternalPropertyKey(key) {
			continue
		}
		field, known := names[string(key)]
		if !known {
			unknown = append(unknown, string(key))
			continue
		}
		value, inside := valueToTerraform(fields[field], properties[key])
		for _, name := range inside {
			unknown = append(unknown, string(key)+"."+name)
		}
		if value != nil {
			object[field] = value
		}
	}
	return object, unknown
}

func valueToTerraform(s *schema.Schema, value resource.PropertyValue) (any, []string) {
	switch {
	case value.IsSecret():
		return valueToTerraform(s, value.SecretValue().Element)
	case value.IsOutput():
		if !value.OutputValue().Known {
			return shimv2.UnknownVariableValue, nil
		}
		return valueToTerraform(s, value.OutputValue().Element)
	case value.IsNull():
		return nil, nil
	case value.IsComputed():
		return shimv2.UnknownVariableValue, nil
	case s == nil:
		return scalar(schema.TypeString, value), nil
	}
	switch s.Type {
	case schema.TypeList, schema.TypeSet:
		elements := []resource.PropertyValue{value}
		if isList(s) {
			if !value.IsArray() {
				return shimv2.UnknownVariableValue, nil
			}
			elements = value.ArrayValue()
		}
		return listToTerraform(s, elements)
	case schema.TypeMap:
		texts := map[string]any{}
		for key, element := range value.ObjectValue() {
			texts[string(key)], _ = valueToTerraform(nil, element)
		}
		return texts, nil
	default:
		return scalar(s.Type, value), nil
	}
}

func listToTerraform(s *schema.Schema, elements []resource.PropertyValue) (any, []string) {
	list, unknown := []any{}, []string(nil)
	for _, element := range elements {
		var converted any
		var inside []string
		if fields := nested(s); fields != nil && element.IsObject() {
			converted, inside = toTerraform(fields, element.ObjectValue())
		} else {
			scalar, _ := s.Elem.(*schema.Schema)
			converted, inside = valueToTerraform(scalar, element)
		}
		list, unknown = append(list, converted), append(unknown, inside...)
	}
	return list, unknown
}

// scalar returns a value of the type that the schema wants, which programs may give as
// another.
func scalar(wanted schema.ValueType, value resource.PropertyValue) any {
	switch {
	case value.IsNumber() && wanted == schema.TypeInt:
		return int(value.NumberValue())
	case value.IsNumber() && wanted == schema.TypeString:
		return strconv.FormatFloat(value.NumberValue(), 'f', -1, 64)
	case value.IsNumber():
		return value.NumberValue()
	case value.IsBool() && wanted == schema.TypeString:
		return strconv.FormatBool(value.BoolValue())
	case value.IsBool():
		return value.BoolValue()
	case value.IsString() && wanted == schema.TypeBool:
		on, _ := strconv.ParseBool(value.StringValue())
		return on
	case value.IsString() && wanted == schema.TypeInt:
		number, _ := strconv.Atoi(value.StringValue())
		return number
	case value.IsString():
		return value.StringValue()
	default:
		return fmt.Sprint(value.V)
	}
}

// toPulumi converts what Terraform holds of a resource. What is null is left out.
func toPulumi(fields map[string]*schema.Schema, object map[string]any) resource.PropertyMap {
	properties := resource.PropertyMap{}
	for name, value := range object {
		s, known := fields[name]
		if !known || value == nil {
			continue
		}
		converted := valueToPulumi(s, value)
		if !converted.IsNull() {
			properties[resource.PropertyKey(pulumiName(fields, name))] = converted
		}
	}
	return properties
}

func valueToPulumi(s *schema.Schema, value any) resource.PropertyValue {
	if value == shimv2.UnknownVariableValue {
		return resource.MakeComputed(resource.NewStringProperty(""))
	}
	switch value := value.(type) {
	case nil:
		return resource.NewNullProperty()
	case []any:
		list := []resource.PropertyValue{}
		for _, element := range value {
			list = append(list, elementToPulumi(s, element))
		}
		switch {
		case isList(s):
			return resource.NewArrayProperty(list)
		case len(list) == 0:
			return resource.NewNullProperty()
		default:
			return list[0]
		}
	case map[string]any:
		texts := resource.PropertyMap{}
		for key, element := range value {
			texts[resource.PropertyKey(key)] = valueToPulumi(nil, element)
		}
		return resource.NewObjectProperty(texts)
	case json.Number:
		number, err := value.Float64()
		if err != nil {
			return resource.NewProperty(value.String())
		}
		return resource.NewProperty(number)
	default:
		return resource.NewPropertyValue(value)
	}
}

func elementToPulumi(s *schema.Schema, element any) resource.PropertyValue {
	fields := nested(s)
	if fields == nil {
		return valueToPulumi(nil, element)
	}
	object, ok := element.(map[string]any)
	switch {
	case ok:
		return resource.NewObjectProperty(toPulumi(fields, object))
	case element == nil:
		// A block without anything in it.
		return resource.NewObjectProperty(resource.PropertyMap{})
	default:
		return valueToPulumi(nil, element)
	}
}

package gcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/pulumi/inflector"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// fields are the fields of a resource or a block in Terraform's schema.
type fields = map[string]*schema.Schema

// isList reports whether a field is a list in Pulumi. A block with at most one element is an object.
func isList(s *schema.Schema) bool {
	return s != nil && (s.Type == schema.TypeList || s.Type == schema.TypeSet) && s.MaxItems != 1
}

// nested returns the fields of a block's elements, nil for anything else.
func nested(s *schema.Schema) fields {
	if s == nil {
		return nil
	}
	if block, ok := s.Elem.(*schema.Resource); ok {
		return block.Schema
	}
	return nil
}

// camelCase returns the name of a field in the bodies of the APIs.
func camelCase(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = string(unicode.ToUpper(rune(word[0]))) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// pulumiName returns the name of a field in Pulumi: camel case, and the plural for a list.
func pulumiName(in fields, name string) string {
	if isList(in[name]) {
		if plural := inflector.Pluralize(name); in[plural] == nil {
			name = plural
		}
	}
	return camelCase(name)
}

// terraformName returns the field with a name in Pulumi, or "".
func terraformName(in fields, name string) string {
	for field := range in {
		if pulumiName(in, field) == name {
			return field
		}
	}
	return ""
}

// notProperties returns the paths of the properties that the schema does not have. The types of the
// others are right: the program's SDK knows them.
func notProperties(in fields, properties resource.PropertyMap, at string) (paths []string) {
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if resource.IsInternalPropertyKey(key) {
			continue
		}
		field := terraformName(in, string(key))
		if field == "" {
			paths = append(paths, at+string(key))
			continue
		}
		elements := []resource.PropertyValue{properties[key]}
		if properties[key].IsArray() {
			elements = properties[key].ArrayValue()
		}
		for _, element := range elements {
			if below := nested(in[field]); below != nil && element.IsObject() {
				paths = append(paths, notProperties(below, element.ObjectValue(), at+string(key)+".")...)
			}
		}
	}
	return paths
}

// toTerraform converts what Pulumi holds of a resource. It leaves out what the schema does not know.
func toTerraform(in fields, properties resource.PropertyMap) map[string]any {
	object := map[string]any{}
	for key, property := range properties {
		field := terraformName(in, string(key))
		if field == "" {
			continue
		}
		if value := valueToTerraform(in[field], property); value != nil {
			object[field] = value
		}
	}
	return object
}

func valueToTerraform(s *schema.Schema, value resource.PropertyValue) any {
	switch {
	case value.IsSecret():
		return valueToTerraform(s, value.SecretValue().Element)
	case value.IsOutput() && value.OutputValue().Known:
		return valueToTerraform(s, value.OutputValue().Element)
	case value.IsOutput(), value.IsComputed():
		return shimv2.UnknownVariableValue
	case value.IsNull():
		return nil
	case isList(s):
		return listToTerraform(s, value.ArrayValue())
	case s.Type == schema.TypeList, s.Type == schema.TypeSet:
		return listToTerraform(s, []resource.PropertyValue{value})
	case s.Type == schema.TypeMap:
		texts := map[string]any{}
		for key, element := range value.ObjectValue() {
			texts[string(key)] = valueToTerraform(&schema.Schema{Type: schema.TypeString}, element)
		}
		return texts
	case s.Type == schema.TypeInt:
		return int(value.NumberValue())
	}
	return value.V
}

func listToTerraform(s *schema.Schema, elements []resource.PropertyValue) any {
	list := []any{}
	for _, element := range elements {
		switch below := nested(s); {
		case below == nil:
			list = append(list, valueToTerraform(s.Elem.(*schema.Schema), element))
		case element.IsObject():
			list = append(list, toTerraform(below, element.ObjectValue()))
		default:
			list = append(list, shimv2.UnknownVariableValue)
		}
	}
	return list
}

// toPulumi converts what Terraform holds of a resource. What is null is left out.
func toPulumi(in fields, object map[string]any) resource.PropertyMap {
	properties := resource.PropertyMap{}
	for name, value := range object {
		if s := in[name]; s != nil {
			if converted := valueToPulumi(s, value); !converted.IsNull() {
				properties[resource.PropertyKey(pulumiName(in, name))] = converted
			}
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
			object, isObject := element.(map[string]any)
			switch below := nested(s); {
			case below != nil && (isObject || element == nil): // nil is a block without anything in it
				list = append(list, resource.NewProperty(toPulumi(below, object)))
			default:
				list = append(list, valueToPulumi(nil, element))
			}
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

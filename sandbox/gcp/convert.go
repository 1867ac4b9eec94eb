package gcp

import (
	"encoding/json"
	"fmt"
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

// toTerraform converts what Pulumi holds of a resource. It leaves out what the schema does not know,
// and what has another type than in the schema, and returns what is wrong with it. The bridge would
// convert some values to the right type; the SDK of the program never creates such values.
func toTerraform(in fields, properties resource.PropertyMap) (object map[string]any, wrong []string) {
	object = map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if key == "id" || resource.IsInternalPropertyKey(key) {
			continue
		}
		field := terraformName(in, string(key))
		if field == "" {
			wrong = append(wrong, string(key)+" is not a property")
			continue
		}
		value, inside := valueToTerraform(in[field], properties[key])
		for _, text := range inside {
			wrong = append(wrong, string(key)+text)
		}
		if value != nil {
			object[field] = value
		}
	}
	return object, wrong
}

// text is the schema of the elements of maps.
var text = &schema.Schema{Type: schema.TypeString}

func valueToTerraform(s *schema.Schema, value resource.PropertyValue) (any, []string) {
	switch {
	case value.IsSecret():
		return valueToTerraform(s, value.SecretValue().Element)
	case value.IsOutput() && value.OutputValue().Known:
		return valueToTerraform(s, value.OutputValue().Element)
	case value.IsOutput(), value.IsComputed():
		return shimv2.UnknownVariableValue, nil
	case value.IsNull():
		return nil, nil
	}
	ok := false
	switch s.Type {
	case schema.TypeList, schema.TypeSet:
		if isList(s) != value.IsArray() {
			break
		}
		if !isList(s) {
			value = resource.NewProperty([]resource.PropertyValue{value})
		}
		return listToTerraform(s, value.ArrayValue())
	case schema.TypeMap:
		if ok = value.IsObject(); ok {
			texts := map[string]any{}
			for key, element := range value.ObjectValue() {
				texts[string(key)], _ = valueToTerraform(text, element)
			}
			return texts, nil
		}
	case schema.TypeBool:
		ok = value.IsBool()
	case schema.TypeInt:
		if ok = value.IsNumber() && value.NumberValue() == float64(int(value.NumberValue())); ok {
			return int(value.NumberValue()), nil
		}
	case schema.TypeFloat:
		ok = value.IsNumber()
	case schema.TypeString:
		ok = value.IsString()
	}
	if !ok {
		return nil, []string{fmt.Sprintf(" is not a %s", s.Type)}
	}
	return value.V, nil
}

func listToTerraform(s *schema.Schema, elements []resource.PropertyValue) (any, []string) {
	list, wrong := []any{}, []string(nil)
	for i, element := range elements {
		at := ""
		if isList(s) {
			at = fmt.Sprintf("[%d]", i)
		}
		below := nested(s)
		switch {
		case below == nil:
			converted, inside := valueToTerraform(s.Elem.(*schema.Schema), element)
			for _, text := range inside {
				wrong = append(wrong, at+text)
			}
			list = append(list, converted)
		case element.IsObject():
			converted, inside := toTerraform(below, element.ObjectValue())
			for _, text := range inside {
				wrong = append(wrong, at+"."+text)
			}
			list = append(list, converted)
		case element.IsComputed():
			list = append(list, shimv2.UnknownVariableValue)
		default:
			wrong = append(wrong, at+" is not an object")
		}
	}
	return list, wrong
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

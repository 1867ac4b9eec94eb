package tfschema

import (
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/pulumi/inflector"
)

// IsList reports whether a field is a list in Pulumi. A block with at most one element is an object.
func IsList(s *schema.Schema) bool {
	return (s.Type == schema.TypeList || s.Type == schema.TypeSet) && s.MaxItems != 1
}

// PulumiName returns the name of a field in Pulumi: camel case, and the plural for a list.
func PulumiName(fields map[string]*schema.Schema, name string) string {
	if name == "terraform_labels" {
		return "pulumiLabels"
	}
	if IsList(fields[name]) {
		if plural := inflector.Pluralize(name); fields[plural] == nil {
			name = plural
		}
	}
	return CamelCase(name)
}

// CamelCase returns the name of a field in the bodies of the APIs.
func CamelCase(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = string(unicode.ToUpper(rune(word[0]))) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// TerraformName returns the field with a name in Pulumi, or "".
func TerraformName(fields map[string]*schema.Schema, name string) string {
	for field := range fields {
		if PulumiName(fields, field) == name {
			return field
		}
	}
	return ""
}

// Nested returns the fields of a block's elements, nil for anything else.
func Nested(s *schema.Schema) map[string]*schema.Schema {
	if s == nil {
		return nil
	}
	if block, ok := s.Elem.(*schema.Resource); ok {
		return block.Schema
	}
	return nil
}

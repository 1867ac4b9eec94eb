package terraform

import (
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/pulumi/inflector"
)

// isList reports whether a field is a list in Pulumi. A block with at most one element is an object.
func isList(s *schema.Schema) bool {
	return (s.Type == schema.TypeList || s.Type == schema.TypeSet) && s.MaxItems != 1
}

// pulumiName returns the name of a field in Pulumi: camel case, and the plural for a list.
func pulumiName(fields map[string]*schema.Schema, name string) string {
	if name == "terraform_labels" {
		return "pulumiLabels"
	}
	if isList(fields[name]) {
		if plural := inflector.Pluralize(name); fields[plural] == nil {
			name = plural
		}
	}
	return camelCase(name)
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

// terraformName returns the field with a name in Pulumi, or "".
func terraformName(fields map[string]*schema.Schema, name string) string {
	for field := range fields {
		if pulumiName(fields, field) == name {
			return field
		}
	}
	return ""
}

// nested returns the fields of a block's elements, nil for anything else.
func nested(s *schema.Schema) map[string]*schema.Schema {
	if s == nil {
		return nil
	}
	if block, ok := s.Elem.(*schema.Resource); ok {
		return block.Schema
	}
	return nil
}

package terraform

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	"persia/sandbox/gcp/google"
)

// converter converts between what Terraform holds of a kind and the body of its
// API.
type converter struct{ kind kind }

// path returns where a field is in the body of its block.
func (c converter) path(at, field string) string {
	if path, renamed := c.kind.paths[at+field]; renamed {
		return path
	}
	return camelCase(field)
}

// expand makes a body of planned values. What is not known, or is the service's to
// set, is left out.
func (c converter) expand(fields map[string]*schema.Schema, object map[string]any, at string) google.Body {
	body := google.Body{}
	for field, value := range object {
		s := fields[field]
		if value == nil || s == nil || !s.Optional && !s.Required || at == "" && slices.Contains(c.kind.local, field) {
			continue
		}
		if converted := c.expandValue(s, value, at+field+"."); converted != nil {
			google.Set(body, c.path(at, field), converted)
		}
	}
	return body
}

func (c converter) expandValue(s *schema.Schema, value any, at string) any {
	elements, isList := value.([]any)
	fields := nested(s)
	if !isList || fields == nil {
		return value
	}
	bodies := []any{}
	for _, element := range elements {
		object, _ := element.(map[string]any)
		bodies = append(bodies, c.expand(fields, object, at))
	}
	switch {
	case s.MaxItems != 1:
		return bodies
	case len(bodies) == 0:
		return nil
	default:
		return bodies[0]
	}
}

// flatten makes of a body what Terraform holds.
func (c converter) flatten(fields map[string]*schema.Schema, body google.Body, at string) map[string]any {
	object := map[string]any{}
	for field, s := range fields {
		if at == "" && slices.Contains(c.kind.local, field) {
			continue
		}
		value, found := google.Lookup(body, c.path(at, field))
		object[field] = zero(s)
		if found {
			object[field] = c.flattenValue(s, value, at+field+".")
		}
		if slices.Contains(c.kind.short, at+field) {
			object[field] = shortened(object[field])
		}
	}
	return object
}

// zero returns the provider's value for a field that a body lacks.
func zero(s *schema.Schema) any {
	switch s.Type {
	case schema.TypeBool, schema.TypeInt, schema.TypeFloat, schema.TypeString:
		return s.ZeroValue()
	default:
		return nil
	}
}

func (c converter) flattenValue(s *schema.Schema, value any, at string) any {
	switch s.Type {
	case schema.TypeList, schema.TypeSet:
		elements, isList := value.([]any)
		if !isList {
			elements = []any{value}
		}
		list := []any{}
		for _, element := range elements {
			if fields := nested(s); fields != nil {
				body, _ := element.(google.Body)
				list = append(list, c.flatten(fields, body, at))
			} else {
				list = append(list, element)
			}
		}
		return list
	case schema.TypeMap:
		return value
	case schema.TypeInt:
		number, _ := strconv.ParseFloat(fmt.Sprint(value), 64)
		return int(number)
	case schema.TypeString:
		return fmt.Sprint(value)
	default:
		return value
	}
}

// shortened are links as the names at their ends.
func shortened(value any) any {
	switch value := value.(type) {
	case string:
		return value[strings.LastIndex(value, "/")+1:]
	case []any:
		names := []any{}
		for _, link := range value {
			names = append(names, shortened(link))
		}
		return names
	default:
		return value
	}
}

package gcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/go-cty/cty"
	ctyjson "github.com/hashicorp/go-cty/cty/json"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	"persia/sandbox/gcp/google"
)

// path returns where a field is in the body of its block.
func (k kind) path(at, field string) string {
	if path, renamed := k.Paths[at+field]; renamed {
		return path
	}
	if field == "effective_labels" {
		return "labels" // only the program labels the resources
	}
	return camelCase(field)
}

// expand makes a body of planned values. What is not known, or is the service's to set, is left out.
func (k kind) expand(in fields, object map[string]any, at string) google.Body {
	body := google.Body{}
	for field, value := range object {
		s := in[field]
		if value == nil || s == nil || !s.Optional && !s.Required || at == "" && slices.Contains(k.Local, field) {
			continue
		}
		elements, isBlock := value.([]any)
		below := nested(s)
		if !isBlock || below == nil {
			google.Set(body, k.path(at, field), value)
			continue
		}
		bodies := []any{}
		for _, element := range elements {
			object, _ := element.(map[string]any)
			bodies = append(bodies, k.expand(below, object, at+field+"."))
		}
		if isList(s) {
			google.Set(body, k.path(at, field), bodies)
		} else if len(bodies) > 0 {
			google.Set(body, k.path(at, field), bodies[0])
		}
	}
	return body
}

// flatten makes of a body what Terraform holds.
func (k kind) flatten(in fields, body google.Body, at string) map[string]any {
	object := map[string]any{}
	for field, s := range in {
		if at == "" && slices.Contains(k.Local, field) {
			continue
		}
		value, found := google.Lookup(body, k.path(at, field))
		switch {
		case found:
			object[field] = k.flattenValue(s, value, at+field+".")
		case s.Type == schema.TypeList || s.Type == schema.TypeSet || s.Type == schema.TypeMap:
			object[field] = nil
		default:
			object[field] = s.ZeroValue()
		}
		if slices.Contains(k.Short, at+field) {
			object[field] = shortened(object[field])
		}
	}
	return object
}

func (k kind) flattenValue(s *schema.Schema, value any, at string) any {
	switch s.Type {
	case schema.TypeList, schema.TypeSet:
		elements, isList := value.([]any)
		if !isList {
			elements = []any{value}
		}
		list := []any{}
		for _, element := range elements {
			if below := nested(s); below != nil {
				body, _ := element.(google.Body)
				element = k.flatten(below, body, at)
			}
			list = append(list, element)
		}
		return list
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
		return google.Segment(value)
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

// plain returns an object of the SDK as JSON has it. What is not known is null.
func plain(value cty.Value) (object map[string]any, err error) {
	text, err := ctyjson.Marshal(cty.UnknownAsNull(value), value.Type())
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	return object, err
}

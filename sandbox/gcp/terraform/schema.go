package terraform

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

//go:embed schema.json
var schemaJSON []byte

//go:embed schema-read.json
var schemaReadJSON []byte

// field is a field of schema.json.
type field struct {
	Type           string           `json:"type"`
	Elem           string           `json:"elem"`
	Fields         map[string]field `json:"fields"`
	Optional       bool             `json:"optional"`
	Computed       bool             `json:"computed"`
	Required       bool             `json:"required"`
	ForceNew       bool             `json:"forceNew"`
	DiffSuppressed bool             `json:"diffSuppressed"`
	Default        any              `json:"default"`
	MaxItems       int              `json:"maxItems"`
	ConfigMode     string           `json:"configMode"`
}

var valueTypes = map[string]schema.ValueType{
	"Bool": schema.TypeBool, "Int": schema.TypeInt, "Float": schema.TypeFloat, "String": schema.TypeString,
	"List": schema.TypeList, "Set": schema.TypeSet, "Map": schema.TypeMap,
}

// readSchema returns the resources of both files by their Terraform names, without
// anything that reads or writes.
func readSchema() (map[string]*schema.Resource, error) {
	var all map[string]struct {
		Fields map[string]field `json:"fields"`
	}
	for name, text := range map[string][]byte{"schema.json": schemaJSON, "schema-read.json": schemaReadJSON} {
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	converted := map[string]*schema.Resource{}
	for name, resource := range all {
		fields, err := schemas(resource.Fields, name)
		if err != nil {
			return nil, err
		}
		converted[name] = &schema.Resource{Schema: fields, CustomizeDiff: customizeDiff(name, fields)}
	}
	// The file has no functions.
	converted["google_storage_bucket"].Schema["location"].StateFunc = func(location any) string {
		return strings.ToUpper(location.(string))
	}
	return converted, restrict(converted)
}

func schemas(fields map[string]field, path string) (map[string]*schema.Schema, error) {
	converted := map[string]*schema.Schema{}
	for name, field := range fields {
		s, err := field.schema(path + "." + name)
		if err != nil {
			return nil, err
		}
		converted[name] = s
	}
	return converted, nil
}

func (f field) schema(path string) (*schema.Schema, error) {
	converted := &schema.Schema{
		Type: valueTypes[f.Type], Optional: f.Optional, Computed: f.Computed, Required: f.Required,
		ForceNew: f.ForceNew, MaxItems: f.MaxItems, Default: f.Default,
	}
	if number, ok := f.Default.(float64); ok && f.Type == "Int" {
		converted.Default = int(number)
	}
	if f.ConfigMode == "attr" {
		converted.ConfigMode = schema.SchemaConfigModeAttr
	}
	if f.DiffSuppressed {
		suppress, known := suppression(path)
		if !known {
			return nil, fmt.Errorf("schema.json: nothing suppresses differences of %s", path)
		}
		converted.DiffSuppressFunc = suppress
	}
	switch {
	case f.Fields != nil:
		fields, err := schemas(f.Fields, path)
		if err != nil {
			return nil, err
		}
		converted.Elem = &schema.Resource{Schema: fields}
	case f.Type == "List" || f.Type == "Set" || f.Type == "Map":
		// Only maps of texts are without an element in the file.
		converted.Elem = &schema.Schema{Type: schema.TypeString}
	}
	return converted, nil
}

package reference

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"persia/config"
	"persia/config/input"
)

// definition begins a reference to a definition, as in draft 7 of JSON Schema, the latest that
// editors support for YAML. The library writes a later one.
const definition = "#/definitions/"

type schema = jsonschema.Schema

// schema returns the JSON Schema of a stack file for editors. It leaves to the program what is required only on
// a condition, like the fields of a job that a manifest may have. So the page comes first.
func (r *Reference) schema() (string, error) {
	job := r.definitions["Job"]
	for _, name := range []string{"Job", "PersiaEnv", "NNWorker", "Role", "Cluster", "NATS", "PEDL"} {
		r.definitions[name].Required = nil
	}
	r.addOlderNames(job)

	keys := &schema{
		Type:       "object",
		Properties: r.definitions["Stack"].Properties,
		// The short form is a pattern, so editors accept it but do not suggest it.
		PatternProperties: map[string]*schema{},
		PropertyNames:     &schema{If: &schema{Pattern: "^pulumi:"}, Else: &schema{}},
	}
	for _, key := range config.Keys() {
		value, _ := keys.Properties.Get(key)
		short := strings.TrimPrefix(key, config.Namespace+":")
		keys.PatternProperties["^"+regexp.QuoteMeta(short)+"$"] = value
		keys.PropertyNames.Else.Enum = append(keys.PropertyNames.Else.Enum, key, short)
	}
	secret := &schema{
		Description:          "A value that is encrypted, as pulumi config set --secret writes it.",
		Type:                 "object",
		Properties:           jsonschema.NewProperties(),
		Required:             []string{"secure"},
		AdditionalProperties: jsonschema.FalseSchema,
	}
	file := &schema{
		Version:              "http://json-schema.org/draft-07/schema#",
		Comments:             "Written by go test ./internal/reference -update, from package config.",
		Title:                "Stack of PERSIA on Google Cloud",
		Type:                 "object",
		AdditionalProperties: jsonschema.FalseSchema,
		Properties:           jsonschema.NewProperties(),
		Definitions:          jsonschema.Definitions{"secret": secret},
	}
	file.Properties.Set("config", keys)
	file.Properties.Set("environment", &schema{})
	secret.Properties.Set("secure", &schema{Type: "string"})
	for _, name := range []string{"secretsprovider", "encryptedkey", "encryptionsalt"} {
		file.Properties.Set(name, &schema{Type: "string", Description: "Pulumi writes it."})
	}
	for name, object := range r.definitions {
		if object.Properties != nil && name != "Stack" {
			file.Definitions[name] = object
		}
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", " ")
	if err := enc.Encode(file); err != nil {
		return "", err
	}
	// Some editors show backticks.
	plain := strings.NewReplacer("#/$defs/", definition, `"$defs"`, `"definitions"`, "`", "", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
	return plain.Replace(text.String()), nil
}

// addOlderNames adds the names of fields in older releases of PERSIA to a job.
func (r *Reference) addOlderNames(job *schema) {
	older := input.OlderNames()
	for _, name := range slices.Sorted(maps.Keys(older)) {
		of, inner := job, older[name]
		if outer, field, nested := strings.Cut(inner, "."); nested {
			value, _ := job.Properties.Get(outer)
			of, inner = r.object(value), field
		}
		value, _ := of.Properties.Get(inner)
		property := *value
		// Editors show it where the user sets the property, and do not suggest the property.
		property.Extras = map[string]any{"deprecationMessage": "The name of older releases of PERSIA. Write " + older[name] + "."}
		job.Properties.Set(name, &property)
	}
}

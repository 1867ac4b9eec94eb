package reference

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/pb33f/ordered-map/v2"

	"persia/config"
	"persia/config/input"
)

// definition begins a reference to a definition, as in draft 7 of JSON Schema, the latest that
// editors support for YAML. The library writes a later one.
const definition = "#/definitions/"

type schema = jsonschema.Schema

// schema returns the JSON Schema of a stack file for editors. It moves what objects require, so the page
// comes first.
func (r *Reference) schema() (string, error) {
	job, nats := r.definitions["Job"], r.definitions["NATS"]
	unlessGiven(r.definitions["Cluster"], &schema{Required: []string{"existing"}})
	unlessGiven(r.definitions["PEDL"], &schema{MaxProperties: new(uint64(0))}) // {} means the same as omitting the key
	natsNeeds := &schema{Required: nats.Required}
	job.Required = []string{"name"}
	unlessGiven(job, withManifest)
	job.Else.Properties = r.leftToManifests(job)
	nats.Required = nil

	c := &schema{
		Description: "What the program and the providers are told.",
		Type:        "object",
		Properties:  r.definitions["Stack"].Properties,
		// The short form is a pattern, so editors accept it but do not suggest it.
		PatternProperties: map[string]*schema{},
		// The schema accepts any keys of providers.
		PropertyNames: &schema{If: &schema{Pattern: `^(persia:|[^:]*$)`}, Then: &schema{}},
		AllOf: []*schema{{
			If:   &schema{AnyOf: []*schema{aJob("persia:jobs"), aJob("jobs")}},
			Else: &schema{Properties: properties(map[string]*schema{"persia:nats": natsNeeds, "nats": natsNeeds})},
		}},
	}
	for _, key := range config.Keys() {
		value, _ := c.Properties.Get(key)
		c.PatternProperties["^"+regexp.QuoteMeta(short(key))+"$"] = value
		c.PropertyNames.Then.Enum = append(c.PropertyNames.Then.Enum, key, short(key))
	}
	needs := &schema{}
	for _, key := range config.RequiredKeys() {
		needs.AllOf = append(needs.AllOf, &schema{AnyOf: []*schema{{Required: []string{key}}, {Required: []string{short(key)}}}})
	}
	file := stackFile(c, needs)
	file.Definitions["secret"] = secret
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

// stackFile returns the schema of a stack file, with Pulumi's own settings. The keys are not needed if
// the file names an environment of Pulumi ESC, which may contain them.
func stackFile(keys, needs *schema) *schema {
	text := func(about string) *schema { return &schema{Type: "string", Description: about} }
	return &schema{
		Version:              "http://json-schema.org/draft-07/schema#",
		Comments:             "Written by go run ./internal/reference/cmd, from package config.",
		Title:                "Stack of PERSIA on Google Cloud",
		Description:          "One deployment: the cluster, its node pools, and the training jobs on them.",
		Type:                 "object",
		AdditionalProperties: jsonschema.FalseSchema,
		Properties: properties(map[string]*schema{
			"config":          keys,
			"secretsprovider": text("What encrypts the stack's secrets. Pulumi writes it."),
			"encryptedkey":    text("The key of the stack's secrets, encrypted. Pulumi writes it."),
			"encryptionsalt":  text("The salt of the passphrase of the stack's secrets. Pulumi writes it."),
			"environment": {
				Description: "Environments of Pulumi ESC that the stack imports, or one that is defined here.",
				AnyOf:       []*schema{{Type: "array"}, {Type: "object"}},
			},
		}),
		If:          &schema{Required: []string{"environment"}},
		Else:        &schema{Required: []string{"config"}, Properties: properties(map[string]*schema{"config": needs})},
		Definitions: jsonschema.Definitions{},
	}
}

// secret is the schema of an encrypted value.
var secret = &schema{
	Description:          "A value that is encrypted, as pulumi config set --secret writes it.",
	Type:                 "object",
	Properties:           properties(map[string]*schema{"secure": {Type: "string"}}),
	Required:             []string{"secure"},
	AdditionalProperties: jsonschema.FalseSchema,
}

// short returns a key without its namespace, which defaults to the project.
func short(key string) string { return strings.TrimPrefix(key, config.Namespace+":") }

// properties returns properties in the order of their names.
func properties(of map[string]*schema) *orderedmap.OrderedMap[string, *schema] {
	all := jsonschema.NewProperties()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all.Set(name, of[name])
	}
	return all
}

// unlessGiven makes the required fields of an object optional on a condition.
func unlessGiven(object, condition *schema) {
	object.If, object.Else, object.Required = condition, &schema{Required: object.Required}, nil
}

// withManifest is a job whose fields are in a manifest.
var withManifest = &schema{Required: []string{"manifest"}}

// aJob requires that a job in the value of a key has a manifest.
func aJob(key string) *schema {
	return &schema{Required: []string{key}, Properties: properties(map[string]*schema{key: {Contains: withManifest}})}
}

// leftToManifests returns what a job without a manifest requires in its objects, which then require
// nothing themselves. It adds the names of fields in older releases of PERSIA to the job.
func (r *Reference) leftToManifests(job *schema) *orderedmap.OrderedMap[string, *schema] {
	needs, objects := map[string]*schema{}, []*schema{}
	for _, f := range fieldsOf(r.types["Job"]) {
		value, _ := job.Properties.Get(f.name)
		if object := r.definitions[nameIn(value)]; object != nil && f.Tag.Get("beside") != "manifest" {
			needs[f.name] = &schema{Required: object.Required}
			objects = append(objects, object)
		}
	}
	for _, object := range objects {
		object.Required = nil
	}
	older := input.OlderNames()
	for _, name := range slices.Sorted(maps.Keys(older)) {
		canonical := older[name]
		if needs[canonical] != nil {
			needs[name] = needs[canonical]
		}
		of, inner := job, canonical
		if outer, field, nested := strings.Cut(canonical, "."); nested {
			value, _ := job.Properties.Get(outer)
			of, inner = r.object(value), field
		}
		value, _ := of.Properties.Get(inner)
		property := *value
		// Editors show it where the user sets the property, and do not suggest the property.
		property.Extras = map[string]any{"deprecationMessage": "The name of older releases of PERSIA. Write " + canonical + "."}
		job.Properties.Set(name, &property)
	}
	return properties(needs)
}

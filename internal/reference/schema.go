package reference

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"persia/config"
	"persia/config/input"
)

// schema is a JSON Schema with the keywords that this package uses, of draft 7, the latest that
// editors support for YAML.
type schema struct {
	Draft       string `json:"$schema,omitempty"`
	Comment     string `json:"$comment,omitempty"`
	Title       string `json:"title,omitempty"`
	Ref         string `json:"$ref,omitempty"`
	Description string `json:"description,omitempty"`
	// Deprecation is not part of JSON Schema. Editors show it where the user sets the
	// property, and do not suggest the property.
	Deprecation string   `json:"deprecationMessage,omitempty"`
	Type        string   `json:"type,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Default     any      `json:"default,omitempty"`
	Pattern     string   `json:"pattern,omitempty"`
	Minimum     *int     `json:"minimum,omitempty"`
	Items       *schema  `json:"items,omitempty"`
	Contains    *schema  `json:"contains,omitempty"`
	Required    []string `json:"required,omitempty"`
	// MaxProperties is 0 for an empty object.
	MaxProperties *int `json:"maxProperties,omitempty"`

	Properties    map[string]*schema `json:"properties,omitempty"`
	Patterns      map[string]*schema `json:"patternProperties,omitempty"`
	PropertyNames *schema            `json:"propertyNames,omitempty"`
	// Additional is false, or the schema of all other properties.
	Additional any `json:"additionalProperties,omitempty"`

	AnyOf []*schema `json:"anyOf,omitempty"`
	AllOf []*schema `json:"allOf,omitempty"`
	If    *schema   `json:"if,omitempty"`
	Then  *schema   `json:"then,omitempty"`
	Else  *schema   `json:"else,omitempty"`

	Definitions map[string]*schema `json:"definitions,omitempty"`
}

// Schema returns the JSON Schema of a stack file for editors.
func Schema(sections []*Section) ([]byte, error) {
	b := &schemaBuilder{sections: map[string]*Section{}, definitions: map[string]*schema{"secret": secret()}}
	for _, s := range sections {
		b.sections[s.Path] = s
	}
	b.findElsewhere()
	for _, s := range sections {
		if s.Name != "" {
			b.definitions[s.Name] = b.object(s)
		}
	}
	file := stackFile()
	file.Properties["config"] = b.config(sections)
	file.Definitions = b.definitions
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(file)
	return text.Bytes(), err
}

// stackFile returns the schema of Pulumi's own settings. It requires no keys if the file names
// an environment of Pulumi ESC, which may contain them.
func stackFile() *schema {
	text := func(about string) *schema { return &schema{Type: "string", Description: about} }
	return &schema{
		Draft:       "http://json-schema.org/draft-07/schema#",
		Comment:     "Written by go run ./internal/reference/cmd, from package config.",
		Title:       "Stack of PERSIA on Google Cloud",
		Description: "One deployment: the cluster, its node pools, and the training jobs on them.",
		Type:        "object",
		Additional:  false,
		Properties: map[string]*schema{
			"secretsprovider": text("What encrypts the stack's secrets. Pulumi writes it."),
			"encryptedkey":    text("The key of the stack's secrets, encrypted. Pulumi writes it."),
			"encryptionsalt":  text("The salt of the passphrase of the stack's secrets. Pulumi writes it."),
			"environment": {
				Description: "Environments of Pulumi ESC that the stack imports, or one that is defined here.",
				AnyOf:       []*schema{{Type: "array"}, {Type: "object"}},
			},
		},
		If:   &schema{Required: []string{"environment"}},
		Else: &schema{Required: []string{"config"}, Properties: map[string]*schema{"config": requiredKeys()}},
	}
}

// requiredKeys returns a schema that requires the keys of every stack.
func requiredKeys() *schema {
	all := &schema{}
	for _, key := range config.RequiredKeys() {
		all.AllOf = append(all.AllOf, &schema{AnyOf: []*schema{
			{Required: []string{key}}, {Required: []string{short(key)}},
		}})
	}
	return all
}

// short returns a key without its namespace, which defaults to the project.
func short(key string) string {
	_, name, _ := strings.Cut(key, ":")
	return name
}

// secret returns the schema of an encrypted value.
func secret() *schema {
	return &schema{
		Description: "A value that is encrypted, as pulumi config set --secret writes it.",
		Type:        "object",
		Properties:  map[string]*schema{"secure": {Type: "string"}},
		Required:    []string{"secure"},
		Additional:  false,
	}
}

type schemaBuilder struct {
	sections    map[string]*Section
	definitions map[string]*schema
	// elsewhere are the names of the objects whose fields a manifest can provide.
	elsewhere map[string]bool
}

// The fields without which others are required.
const (
	manifestField = "manifest"
	existingField = "existing"
)

// findElsewhere finds the objects that a manifest can provide: NATS, and the objects of a job.
func (b *schemaBuilder) findElsewhere() {
	b.elsewhere = map[string]bool{b.sections["persia:nats"].Name: true}
	for _, f := range b.sections["persia:jobs"].Fields {
		if object := b.objectOf(f); object != nil && !f.Beside {
			b.elsewhere[object.Name] = true
		}
	}
}

// objectOf returns the section of a field that is an object.
func (b *schemaBuilder) objectOf(f Field) *Section {
	if f.Type.Kind != Object {
		return nil
	}
	return b.sections[f.Type.Section]
}

// config returns the schema of all keys. It accepts any keys of providers.
func (b *schemaBuilder) config(sections []*Section) *schema {
	c := &schema{
		Description: "What the program and the providers are told.",
		Type:        "object",
		Properties:  map[string]*schema{},
		// The short form is a pattern, so editors accept it but do not suggest it.
		Patterns: map[string]*schema{},
		PropertyNames: &schema{
			If:   &schema{Pattern: `^(persia:|[^:]*$)`},
			Then: &schema{},
		},
	}
	for _, s := range sections {
		if s.Key {
			c.Properties[s.Path] = b.key(s)
			c.Patterns["^"+regexp.QuoteMeta(short(s.Path))+"$"] = b.key(s)
			c.PropertyNames.Then.Enum = append(c.PropertyNames.Then.Enum, s.Path)
		}
	}
	for _, key := range config.Keys() {
		c.PropertyNames.Then.Enum = append(c.PropertyNames.Then.Enum, short(key))
	}
	c.AllOf = []*schema{b.natsWithoutManifest()}
	return c
}

func (b *schemaBuilder) key(s *Section) *schema {
	value := b.value(s.Type, false)
	value.Description = unmarked(s.Doc)
	return value
}

// natsWithoutManifest returns a schema that requires the fields of persia:nats that a manifest
// could provide, if no job has one.
func (b *schemaBuilder) natsWithoutManifest() *schema {
	withManifest := &schema{Contains: &schema{Required: []string{manifestField}}}
	return &schema{
		If: &schema{AnyOf: []*schema{
			{Required: []string{"persia:jobs"}, Properties: map[string]*schema{"persia:jobs": withManifest}},
			{Required: []string{"jobs"}, Properties: map[string]*schema{"jobs": withManifest}},
		}},
		Else: &schema{Properties: map[string]*schema{
			"persia:nats": {Required: required(b.sections["persia:nats"].Fields)},
			"nats":        {Required: required(b.sections["persia:nats"].Fields)},
		}},
	}
}

// object returns the schema of an object.
func (b *schemaBuilder) object(s *Section) *schema {
	o := &schema{
		Description: unmarked(s.Doc),
		Type:        "object",
		Properties:  map[string]*schema{},
		Additional:  false,
	}
	withSecret := slices.ContainsFunc(s.Fields, func(f Field) bool { return f.Type.Secret })
	for _, f := range s.Fields {
		o.Properties[f.Name] = b.field(f, withSecret)
	}
	switch {
	case s.Path == "persia:cluster":
		o.If = &schema{Required: []string{existingField}}
		o.Else = &schema{Required: required(s.Fields)}
	case s.Path == "persia:jobs":
		b.olderNames(s, o)
		o.If = &schema{Required: []string{manifestField}}
		o.Else = b.wholeJob(s)
	case s.Path == "persia:pedl":
		// {} means the same as omitting the key.
		o.Else, o.If = &schema{Required: required(s.Fields)}, &schema{MaxProperties: new(0)}
	case !b.elsewhere[s.Name]:
		o.Required = required(s.Fields)
	}
	return o
}

func required(fields []Field) []string {
	var names []string
	for _, f := range fields {
		if f.Required {
			names = append(names, f.Name)
		}
	}
	return names
}

// wholeJob returns a schema that requires the fields that a manifest would provide.
func (b *schemaBuilder) wholeJob(s *Section) *schema {
	whole := &schema{Required: []string{"name"}, Properties: map[string]*schema{}}
	for _, f := range s.Fields {
		if object := b.objectOf(f); object != nil && b.elsewhere[object.Name] {
			whole.Properties[f.Name] = &schema{Required: required(object.Fields)}
		}
	}
	for older, canonical := range input.OlderNames() {
		if whole.Properties[canonical] != nil {
			whole.Properties[older] = whole.Properties[canonical]
		}
	}
	return whole
}

// olderNames adds the names of job fields in older releases of PERSIA.
func (b *schemaBuilder) olderNames(s *Section, job *schema) {
	for older, canonical := range input.OlderNames() {
		of, name := s, canonical
		if outer, inner, nested := strings.Cut(canonical, "."); nested {
			of, name = b.objectOf(*s.field(outer)), inner
		}
		property := b.field(*of.field(name), false)
		property.Deprecation = "The name of older releases of PERSIA. Write " + canonical + "."
		job.Properties[older] = property
	}
}

// field returns the field with a name, or nil.
func (s *Section) field(name string) *Field {
	i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Fields[i]
}

// field returns the schema of a field. With secretToo, as in an object with a secret, strings may
// be encrypted.
func (b *schemaBuilder) field(f Field, secretToo bool) *schema {
	value := b.value(f.Type, secretToo)
	value.Description = inPlainText(f)
	value.Default = defaultValue(f)
	value.Minimum = f.Least
	return value
}

// value returns the schema of a value.
func (b *schemaBuilder) value(t Type, secretToo bool) *schema {
	switch t.Kind {
	case Text:
		text := &schema{Type: "string", Enum: texts(t.Values)}
		if secretToo {
			return &schema{AnyOf: []*schema{text, {Ref: "#/definitions/secret"}}}
		}
		return text
	case Integer:
		return &schema{Type: "integer"}
	case Number:
		return &schema{Type: "number"}
	case Boolean:
		return &schema{Type: "boolean"}
	case Quantity:
		text := &schema{Type: "string", Pattern: input.QuantityForm}
		if t.Quoted {
			return text
		}
		return &schema{AnyOf: []*schema{text, {Type: "number"}}}
	case Object:
		return &schema{Ref: "#/definitions/" + b.sections[t.Section].Name}
	case List:
		return &schema{Type: "array", Items: b.value(*t.Elem, false)}
	case Map:
		return &schema{Type: "object", Additional: b.value(*t.Elem, false)}
	}
	return &schema{}
}

func texts(values []Value) []string {
	var texts []string
	for _, v := range values {
		texts = append(texts, v.Text)
	}
	return texts
}

// defaultValue returns the default of a field as a JSON value, or nil.
func defaultValue(f Field) any {
	switch f.Type.Kind {
	case Boolean:
		if value, err := strconv.ParseBool(f.Default); err == nil {
			return value
		}
	case Integer:
		if value, err := strconv.Atoi(f.Default); err == nil {
			return value
		}
	case Text, Quantity:
		if f.Default != "" {
			return f.Default
		}
	}
	return nil
}

// inPlainText returns the description of a field and its values.
func inPlainText(f Field) string {
	text := f.Doc
	for _, v := range f.Type.Values {
		if v.Doc != "" {
			text += " " + v.Text + " " + v.Doc
		}
	}
	return unmarked(text)
}

// unmarked returns a text in one line without backticks, which some editors show.
func unmarked(text string) string {
	return oneLine(strings.ReplaceAll(text, "`", ""))
}

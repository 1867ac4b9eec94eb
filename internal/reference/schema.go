package reference

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"persia/config"
	"persia/config/check"
	"persia/config/manifest"
)

// schema is a JSON Schema, as far as one is needed here. The draft is the seventh,
// the last one that editors know in YAML.
type schema struct {
	Draft       string `json:"$schema,omitempty"`
	Comment     string `json:"$comment,omitempty"`
	Title       string `json:"title,omitempty"`
	Ref         string `json:"$ref,omitempty"`
	Description string `json:"description,omitempty"`
	// Deprecation is no part of JSON Schema. Editors show it where the property is
	// used, and do not propose the property.
	Deprecation string   `json:"deprecationMessage,omitempty"`
	Type        string   `json:"type,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Default     any      `json:"default,omitempty"`
	Pattern     string   `json:"pattern,omitempty"`
	Minimum     *int     `json:"minimum,omitempty"`
	Items       *schema  `json:"items,omitempty"`
	Contains    *schema  `json:"contains,omitempty"`
	Required    []string `json:"required,omitempty"`
	// MaxProperties is 0 for an object that is empty.
	MaxProperties *int `json:"maxProperties,omitempty"`

	Properties    map[string]*schema `json:"properties,omitempty"`
	Patterns      map[string]*schema `json:"patternProperties,omitempty"`
	PropertyNames *schema            `json:"propertyNames,omitempty"`
	// Additional is false, or the schema of properties that have no other.
	Additional any `json:"additionalProperties,omitempty"`

	AnyOf []*schema `json:"anyOf,omitempty"`
	AllOf []*schema `json:"allOf,omitempty"`
	If    *schema   `json:"if,omitempty"`
	Then  *schema   `json:"then,omitempty"`
	Else  *schema   `json:"else,omitempty"`

	Definitions map[string]*schema `json:"definitions,omitempty"`
}

// Schema is the JSON Schema of a stack file, for editors.
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

// stackFile is what Pulumi reads of a stack file. With an environment of Pulumi
// ESC, keys may stand there instead.
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

// requiredKeys requires the keys that every stack has.
func requiredKeys() *schema {
	all := &schema{}
	for _, key := range config.RequiredKeys() {
		all.AllOf = append(all.AllOf, &schema{AnyOf: []*schema{
			{Required: []string{key}}, {Required: []string{short(key)}},
		}})
	}
	return all
}

// short is a key without its namespace, which Pulumi takes from the project then.
func short(key string) string {
	_, name, _ := strings.Cut(key, ":")
	return name
}

// secret is what Pulumi writes in the place of a value that is encrypted.
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
	// elsewhere are the objects, by their names, whose fields a manifest may have.
	elsewhere map[string]bool
}

// The fields that stand for others, which are required without them.
const (
	manifestField = "manifest"
	existingField = "existing"
)

// findElsewhere finds the objects that a manifest fills: those of a job, and NATS.
func (b *schemaBuilder) findElsewhere() {
	b.elsewhere = map[string]bool{b.sections["persia:nats"].Name: true}
	for _, f := range b.sections["persia:jobs"].Fields {
		if object := b.objectOf(f); object != nil && !f.Beside {
			b.elsewhere[object.Name] = true
		}
	}
}

// objectOf is the section of a field that is an object.
func (b *schemaBuilder) objectOf(f Field) *Section {
	if f.Type.Kind != Object {
		return nil
	}
	return b.sections[f.Type.Section]
}

// config is the schema of all keys. Those of providers are theirs to check.
func (b *schemaBuilder) config(sections []*Section) *schema {
	c := &schema{
		Description: "What the program and the providers are told.",
		Type:        "object",
		Properties:  map[string]*schema{},
		// The short form is understood, and not proposed, since it is no property.
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

// natsWithoutManifest requires of NATS what no manifest can have.
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

// object is the schema of an object.
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
		// {} is as if the key was left out.
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

// wholeJob requires of a job what a manifest would have.
func (b *schemaBuilder) wholeJob(s *Section) *schema {
	whole := &schema{Required: []string{"name"}, Properties: map[string]*schema{}}
	for _, f := range s.Fields {
		if object := b.objectOf(f); object != nil && b.elsewhere[object.Name] {
			whole.Properties[f.Name] = &schema{Required: required(object.Fields)}
		}
	}
	for older, canonical := range manifest.OlderNames() {
		if whole.Properties[canonical] != nil {
			whole.Properties[older] = whole.Properties[canonical]
		}
	}
	return whole
}

// olderNames adds what older releases of PERSIA call the fields of a job.
func (b *schemaBuilder) olderNames(s *Section, job *schema) {
	for older, canonical := range manifest.OlderNames() {
		of, name := s, canonical
		if outer, inner, nested := strings.Cut(canonical, "."); nested {
			of, name = b.objectOf(*s.field(outer)), inner
		}
		property := b.field(*of.field(name), false)
		property.Deprecation = "The name of older releases of PERSIA. Write " + canonical + "."
		job.Properties[older] = property
	}
}

// field finds the field of a name, or is nil.
func (s *Section) field(name string) *Field {
	i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Fields[i]
}

// field is the schema of a field. Beside a secret, any text may be one.
func (b *schemaBuilder) field(f Field, secretToo bool) *schema {
	value := b.value(f.Type, secretToo)
	value.Description = inPlainText(f)
	value.Default = defaultValue(f)
	value.Minimum = f.Least
	return value
}

// value is the schema of a value.
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
		text := &schema{Type: "string", Pattern: check.QuantityForm}
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

// defaultValue is the default of a field as JSON has it, or nil.
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

// inPlainText says what a field is, and what each of its values is.
func inPlainText(f Field) string {
	text := f.Doc
	for _, v := range f.Type.Values {
		if v.Doc != "" {
			text += " " + v.Text + " " + v.Doc
		}
	}
	return unmarked(text)
}

// unmarked is a text in one line, without marks, which some editors show as they are.
func unmarked(text string) string {
	return oneLine(strings.ReplaceAll(text, "`", ""))
}

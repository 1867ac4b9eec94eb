// Package stackgen makes up stack files: from the JSON Schema of stack files it takes
// which keys there are, and changes real stack files key by key, with usual values and
// with odd ones. What the program refuses is undone, so that every stack in the end is
// one that the program accepts, however strange.
package stackgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Schema is the part of the JSON Schema of stack files that defines the keys.
type Schema struct {
	Definitions map[string]*node `json:"definitions"`
	Properties  struct {
		Config *node `json:"config"`
	} `json:"properties"`

	// keys are all keys, each by the definition that it belongs to.
	keys []Key
	// parents are the keys whose values hold a definition.
	parents map[string][]Key
}

// Key is a key of a stack file: a property of a definition of the schema.
type Key struct{ Definition, Property string }

func (k Key) String() string { return k.Definition + "." + k.Property }

// root is the name under which the keys of the program stand among the definitions.
const root = "config"

// node is the schema of a value.
type node struct {
	Ref         string           `json:"$ref"`
	Type        string           `json:"type"`
	Enum        []any            `json:"enum"`
	Default     any              `json:"default"`
	Pattern     string           `json:"pattern"`
	Items       *node            `json:"items"`
	AnyOf       []*node          `json:"anyOf"`
	Properties  map[string]*node `json:"properties"`
	Required    []string         `json:"required"`
	Additional  additional       `json:"additionalProperties"`
	Deprecation string           `json:"deprecationMessage"`
}

// additional is the schema of the entries of a map, if it is not false.
type additional struct{ *node }

func (a *additional) UnmarshalJSON(text []byte) error {
	if string(text) == "false" {
		return nil
	}
	a.node = &node{}
	if string(text) == "true" { // any value
		return nil
	}
	return json.Unmarshal(text, a.node)
}

// ReadSchema reads the schema of a file.
func ReadSchema(path string) (*Schema, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("schema of stack files: %w", err)
	}
	s := &Schema{parents: map[string][]Key{}}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("schema of stack files, %s: %w", path, err)
	}
	s.Definitions[root] = s.Properties.Config
	// A secret is a text by the time that the program sees it.
	delete(s.Definitions, "secret")
	for _, definition := range slices.Sorted(maps.Keys(s.Definitions)) {
		properties := s.Definitions[definition].Properties
		for _, property := range slices.Sorted(maps.Keys(properties)) {
			key := Key{definition, property}
			s.keys = append(s.keys, key)
			if held := properties[property].holds(); held != "" {
				s.parents[held] = append(s.parents[held], key)
			}
		}
	}
	return s, nil
}

// Keys returns all keys of stack files, sorted.
func (s *Schema) Keys() []Key { return slices.Clone(s.keys) }

// holds returns the definition of the objects in a value: the value's own definition, or the
// definition of a list's items or a map's entries.
func (n *node) holds() string {
	switch {
	case n == nil:
		return ""
	case n.Ref != "":
		return n.Ref[strings.LastIndex(n.Ref, "/")+1:]
	case n.Items != nil:
		return n.Items.holds()
	default:
		return n.Additional.node.holds()
	}
}

// visit calls see with every object of a value and its definition.
func (s *Schema) visit(value any, n *node, see func(definition string, object map[string]any)) {
	if n == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if definition := s.Definitions[n.holds()]; n.Ref != "" && definition != nil {
			see(n.holds(), value)
			n = definition
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			inner, known := n.Properties[name]
			if !known {
				inner = n.Additional.node
			}
			s.visit(value[name], inner, see)
		}
	case []any:
		for _, item := range value {
			s.visit(item, n.Items, see)
		}
	}
}

func (s *Schema) objects(stack Stack, see func(definition string, object map[string]any)) {
	s.visit(map[string]any(stack), &node{Ref: "#/definitions/" + root}, see)
}

package tests

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/reference"
	"persia/internal/testkit"
)

// TestKeysAreEverywhere holds that every key, and every field below it, is in the
// schema and in the reference, and every key in Pulumi.yaml. That each changes the plan is
// TestEveryKeyHasAnEffect's to show, in sandbox/stackgen.
func TestKeysAreEverywhere(t *testing.T) {
	var project struct {
		Config map[string]any `json:"config"`
	}
	readYAML(t, "Pulumi.yaml", &project)
	sections, err := reference.Sections(filepath.Join(root, "config"))
	require.NoError(t, err)
	schema := readSchema(t)
	page := readText(t, "docs/reference/configuration.md") + readText(t, "docs/reference/pedl.md")
	described := map[string]bool{}
	for _, s := range sections {
		described[s.Path] = s.Key
		if s.Key {
			assert.Contains(t, project.Config, s.Path, "Pulumi.yaml")
			assert.NotNil(t, schema.at("config").Properties[s.Path], "%s has no %s", testkit.SchemaFile, s.Path)
			assert.True(t, strings.Contains(page, "\n## "+s.Path+"\n"), "docs/reference has no %s", s.Path)
		}
		if s.Kubernetes {
			continue
		}
		object := schema.at("config", strings.Split(s.Path, ".")...)
		for _, f := range s.Fields {
			path := s.Path + "." + f.Name
			assert.NotNil(t, object.Properties[f.Name], "%s has no %s", testkit.SchemaFile, path)
			assert.True(t, strings.Contains(page, "\n| `"+f.Name+"` |"), "docs/reference has no %s", path)
		}
	}
	for _, key := range config.Keys() {
		assert.True(t, described[key], "package reference has no section for %s", key)
	}
}

// schemaNode is a part of a JSON Schema.
type schemaNode struct {
	Ref         string                 `json:"$ref"`
	Items       *schemaNode            `json:"items"`
	Additional  json.RawMessage        `json:"additionalProperties"`
	Properties  map[string]*schemaNode `json:"properties"`
	Definitions map[string]*schemaNode `json:"definitions"`
}

func readSchema(t *testing.T) *schemaNode {
	t.Helper()
	schema := &schemaNode{}
	require.NoError(t, json.Unmarshal([]byte(readText(t, testkit.SchemaFile)), schema))
	return schema
}

// at returns the object at a path of names. A name may end with the reference's signs for lists and
// maps. A missing object has no properties.
func (n *schemaNode) at(first string, rest ...string) *schemaNode {
	node := n
	for _, name := range append([]string{first}, rest...) {
		name, _, _ = strings.Cut(name, "[")
		node = node.Properties[name]
		if node == nil {
			return &schemaNode{}
		}
		node = n.resolve(node)
	}
	return node
}

// resolve finds the object inside of lists, maps and references.
func (n *schemaNode) resolve(node *schemaNode) *schemaNode {
	var inner *schemaNode
	switch {
	case node.Ref != "":
		inner = n.Definitions[strings.TrimPrefix(node.Ref, "#/definitions/")]
	case node.Items != nil:
		inner = node.Items
	case bytes.HasPrefix(node.Additional, []byte("{")):
		inner = &schemaNode{}
		if json.Unmarshal(node.Additional, inner) != nil {
			inner = nil
		}
	}
	if inner == nil {
		return node
	}
	return n.resolve(inner)
}

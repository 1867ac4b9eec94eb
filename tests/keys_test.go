package tests

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/reference"
	"persia/internal/schematest"
)

// TestKeysAreEverywhere holds that every key, and every field below it, is in the
// schema, in the reference and in a test or an example, and every key in
// Pulumi.yaml.
func TestKeysAreEverywhere(t *testing.T) {
	var project struct {
		Config map[string]any `json:"config"`
	}
	readYAML(t, "Pulumi.yaml", &project)
	sections, err := reference.Sections(filepath.Join(root, "config"))
	require.NoError(t, err)
	page, tested, schema := readText(t, "docs/reference/configuration.md"), testedWords(t), readSchema(t)
	described := map[string]bool{}
	for _, s := range sections {
		described[s.Path] = s.Key
		if s.Key {
			assert.Contains(t, project.Config, s.Path, "Pulumi.yaml")
			assert.NotNil(t, schema.at("config").Properties[s.Path], "%s has no %s", schematest.File, s.Path)
			assert.True(t, strings.Contains(page, "\n## "+s.Path+"\n"), "docs/reference/configuration.md has no %s", s.Path)
			assert.True(t, tested[s.Path], "no test and no example has %s", s.Path)
		}
		if s.Kubernetes {
			continue
		}
		object := schema.at("config", strings.Split(s.Path, ".")...)
		for _, f := range s.Fields {
			path := s.Path + "." + f.Name
			assert.NotNil(t, object.Properties[f.Name], "%s has no %s", schematest.File, path)
			assert.True(t, strings.Contains(page, "\n| `"+f.Name+"` |"), "docs/reference/configuration.md has no %s", path)
			assert.True(t, tested[f.Name], "no test and no example has %s: add a case that asserts something", path)
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
	require.NoError(t, json.Unmarshal([]byte(readText(t, schematest.File)), schema))
	return schema
}

// at is the object at a path of names, of which each may end with the signs of the
// reference for lists and maps. What is not there has no properties.
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

// word is a key with its namespace, or a name.
var word = regexp.MustCompile(`persia:\w+|\w+`)

// testedWords are the words of all tests but this, of their data and of the
// examples.
func testedWords(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name := entry.Name(); name != root && strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return nil
		case !isTest(path) || entry.Name() == "keys_test.go":
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range word.FindAll(text, -1) {
			words[string(found)] = true
			words[strings.TrimPrefix(string(found), "persia:")] = true
		}
		return err
	}))
	return words
}

func isTest(path string) bool {
	path = filepath.ToSlash(path)
	return strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") || strings.HasPrefix(path, root+"/examples/")
}

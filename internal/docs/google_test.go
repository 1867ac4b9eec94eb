package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// toGoogle are the sections of docs/reference/google-cloud.md, with the keys of a stack file whose
// settings each lists, and those below that reach no more than the API of Kubernetes or
// the program itself.
var toGoogle = map[string]struct{ keys, others []string }{
	"Cluster":    {[]string{"persia:cluster"}, []string{"existing", "replace"}},
	"Node pools": {[]string{"persia:nodePools", "persia:nvidiaDriver"}, []string{"spareNodes"}},
	"Images":     {[]string{"persia:images"}, nil},
	"Storage": {[]string{"persia:storage"}, []string{
		"accessModes", "claim", "csi", "hostPath", "iscsi", "labels", "local", "mountOptions", "name", "nfs", "persistentDisk.fsType", "reclaimPolicy",
	}},
	"PEDL": {[]string{"persia:pedl"}, []string{
		"agent", "agentImage", "imagePullPolicy", "masterImage", "nodePool", "nodeSelector", "postgresql", "registry", "resources", "supportCheck", "tolerations", "trialRunner",
	}},
}

// elsewhere are the keys of a stack file whose settings appear in no request to Google Cloud: the
// project is part of every name, machine types describe existing machines, and NATS and jobs are
// Kubernetes objects.
var elsewhere = []string{"persia:project", "persia:machineTypes", "persia:nats", "persia:operator", "persia:queue", "persia:jobs"}

// TestSourcesOfGoogleSettings checks that docs/reference/google-cloud.md gives a source for every
// setting that reaches Google Cloud.
func TestSourcesOfGoogleSettings(t *testing.T) {
	listed := googleRows(t)
	schema := readStackSchema(t)
	sections := map[string]string{}
	for section, of := range toGoogle {
		for _, key := range of.keys {
			sections[key] = section
		}
	}
	for key := range declaredKeys(t) {
		section, known := sections[key]
		if !known {
			assert.Contains(t, elsewhere, key, "it is in no section of toGoogle")
			continue
		}
		others := slices.Clone(toGoogle[section].others)
		for _, path := range schema.leaves(schema.root.Properties["config"].Properties[key]) {
			row := covers(listed[section], path) || slices.Contains(listed[section], key)
			other := covers(others, path)
			if row == other {
				t.Errorf("%s of %s: docs/reference/google-cloud.md, section %s: a row: %t; listed as not Google's: %t", path, key, section, row, other)
			}
		}
	}
	for section, rows := range listed {
		var paths []string
		for _, key := range toGoogle[section].keys {
			paths = append(paths, key)
			paths = append(paths, schema.leaves(schema.root.Properties["config"].Properties[key])...)
		}
		for _, row := range rows {
			assert.True(t, slices.ContainsFunc(paths, func(path string) bool { return covers([]string{row}, path) }), "section %s: there is no %s", section, row)
		}
	}
}

// covers reports whether a path is one of several, or below.
func covers(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(of string) bool { return path == of || strings.HasPrefix(path, of+".") })
}

var sources = regexp.MustCompile(`(?i)recorded|documented|not seen|from a mock`)

// googleRows are the settings in the first columns, by section.
func googleRows(t *testing.T) map[string][]string {
	t.Helper()
	p := readPage(t, filepath.Join("docs", "reference", "google-cloud.md"))
	listed, section := map[string][]string{}, ""
	p.walk(func(node ast.Node) {
		switch node := node.(type) {
		case *ast.Heading:
			section = p.text(node)
		case *extast.TableRow:
			if _, ours := toGoogle[section]; !ours {
				return
			}
			first := node.FirstChild()
			source := p.text(first.NextSibling().NextSibling())
			assert.Regexp(t, sources, source, "%s: the source", p.text(first))
			for _, of := range strings.Split(p.text(first), ",") {
				name, _, _ := strings.Cut(strings.TrimSpace(of), ": ")
				if name != "not configurable" {
					listed[section] = append(listed[section], name)
				}
			}
		}
	})
	require.Len(t, listed, len(toGoogle))
	return listed
}

// stackSchema is stack.schema.json.
type stackSchema struct {
	root        schemaNode
	definitions map[string]schemaNode
}

type schemaNode struct {
	Ref        string                `json:"$ref"`
	Properties map[string]schemaNode `json:"properties"`
	Items      json.RawMessage       `json:"items"`
	Any        []schemaNode          `json:"anyOf"`
	One        []schemaNode          `json:"oneOf"`
	All        []schemaNode          `json:"allOf"`
}

func readStackSchema(t *testing.T) stackSchema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "stack.schema.json"))
	require.NoError(t, err)
	var schema stackSchema
	require.NoError(t, json.Unmarshal(text, &schema.root))
	var all struct {
		Definitions map[string]schemaNode `json:"definitions"`
	}
	require.NoError(t, json.Unmarshal(text, &all))
	schema.definitions = all.Definitions
	return schema
}

// leaves are the paths of the fields of a node that have none inside, without the
// brackets of lists.
func (s stackSchema) leaves(node schemaNode) []string {
	if definition, found := strings.CutPrefix(node.Ref, "#/definitions/"); found {
		node = s.definitions[definition]
	}
	var paths []string
	for name, field := range node.Properties {
		below := s.leaves(field)
		if len(below) == 0 {
			paths = append(paths, name)
		}
		for _, path := range below {
			paths = append(paths, name+"."+path)
		}
	}
	var items schemaNode
	if json.Unmarshal(node.Items, &items) == nil {
		paths = append(paths, s.leaves(items)...)
	}
	for _, alternative := range slices.Concat(node.Any, node.One, node.All) {
		paths = append(paths, s.leaves(alternative)...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

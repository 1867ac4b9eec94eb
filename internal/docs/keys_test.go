package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"sigs.k8s.io/yaml"

	"persia/config"
)

// keyPrefix begins every key of a stack file.
const keyPrefix = "persia:"

// reference is the configuration reference: the fields of each section, by the
// anchor of its heading.
type reference struct {
	fields map[string]map[string]field
}

// field is a row of a table: where the fields inside of it are, if there are any.
type field struct {
	// section is an anchor, or empty. kubernetes says that the fields inside are
	// Kubernetes' own.
	section    string
	kubernetes bool
}

func readReference(t *testing.T) *reference {
	t.Helper()
	r := &reference{fields: map[string]map[string]field{}}
	for _, name := range []string{"configuration.md", "pedl.md"} {
		p, section := readPage(t, filepath.Join("docs", "reference", name)), ""
		p.walk(func(node ast.Node) {
			switch node := node.(type) {
			case *ast.Heading:
				section = slug(p.text(node))
				r.fields[section] = map[string]field{}
			case *extast.TableRow:
				name, kind := node.FirstChild(), node.FirstChild().NextSibling()
				r.fields[section][p.text(name)] = fieldOf(kind)
			}
		})
	}
	for key := range declaredKeys(t) {
		require.NotNil(t, r.fields[slug(key)], "%s is in Pulumi.yaml and not in docs/reference: go run ./internal/reference/cmd writes it anew", key)
	}
	return r
}

func fieldOf(kind ast.Node) field {
	var of field
	_ = ast.Walk(kind, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := node.(*ast.Link); ok {
			target := string(link.Destination)
			if of.kubernetes = strings.HasPrefix(target, "https://"); !of.kubernetes {
				_, of.section, _ = strings.Cut(target, "#")
			}
		}
		return ast.WalkContinue, nil
	})
	return of
}

// declaredKeys are the keys of Pulumi.yaml.
func declaredKeys(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Pulumi.yaml"))
	require.NoError(t, err)
	var project struct {
		Config map[string]any `json:"config"`
	}
	require.NoError(t, yaml.Unmarshal(text, &project))
	return project.Config
}

// missing is the first part of a key's path that the reference does not have, or
// nothing. path has no positions.
func (r *reference) missing(path string) string {
	names := strings.Split(path, ".")
	at := field{section: slug(names[0])}
	if r.fields[at.section] == nil {
		return names[0]
	}
	for i, name := range names[1:] {
		if at.kubernetes {
			return ""
		}
		next, known := r.fields[at.section][name]
		if !known {
			return strings.Join(names[:i+2], ".")
		}
		at = next
	}
	return ""
}

var (
	position = regexp.MustCompile(`\[[^\]]*\]`)
	keyPath  = regexp.MustCompile(`persia:[A-Za-z]+(?:\[[^\]]*\]|\.[A-Za-z_]+)*`)
	// settingPath is how text speaks of a field, without the prefix.
	settingPath = regexp.MustCompile(`^[A-Za-z]+(?:\[[^\]]*\])?(?:\.[A-Za-z]+(?:\[[^\]]*\])?)+$`)
	setting     = regexp.MustCompile(`(?m)^ *pulumi config .*$`)
)

// checkKey looks for a key, or a field of one, in a piece of inline code.
func (r *repository) checkKey(code string) []string {
	if strings.HasPrefix(code, keyPrefix) {
		path := keyPath.FindString(code)
		if path == "" || strings.HasPrefix(code[len(path):], ":") {
			return nil // a type of Pulumi's
		}
		return r.checkKeyPath(path)
	}
	first, rest, _ := strings.Cut(position.ReplaceAllString(code, ""), ".")
	key := slug(keyPrefix + first)
	if !settingPath.MatchString(code) || r.reference.fields[key] == nil || rest == "io" || rest == "googleapis.com" {
		return nil
	}
	return r.checkKeyPath(keyPrefix + code)
}

// checkKeysOf looks for keys in commands that set them.
func (r *repository) checkKeysOf(code string) []string {
	var problems []string
	for _, line := range setting.FindAllString(code, -1) {
		for _, path := range keyPath.FindAllString(line, -1) {
			problems = append(problems, r.checkKeyPath(path)...)
		}
	}
	return problems
}

func (r *repository) checkKeyPath(path string) []string {
	if missing := r.reference.missing(position.ReplaceAllString(path, "")); missing != "" {
		return []string{fmt.Sprintf("docs/reference has no %s; correct the key", missing)}
	}
	return nil
}

var yamlStart = regexp.MustCompile(`^(?:- )?[a-z]\w*(?::[A-Za-z]\w*)?:(?:\s|$)`)

// looksLikeYAML is for blocks without a language. What programs print does not begin
// with the name of a field.
func looksLikeYAML(text string) bool {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			return yamlStart.MatchString(line)
		}
	}
	return false
}

var (
	// ellipsis marks lines that a page leaves out.
	ellipsis = regexp.MustCompile(`(?m)^ *\.\.\.$`)
	yamlLine = regexp.MustCompile(`line \d+: `)
	shape    = regexp.MustCompile(`unknown field|must be (?:a string|an integer|a number|an object|a list|true or false)`)
)

// checkYAML reads the keys of a stack file as the program does. What they do not say
// is left out: the page is about something else.
func checkYAML(text string) []string {
	text = ellipsis.ReplaceAllString(text, "")
	var problems []string
	for _, document := range strings.Split(text, "\n---\n") {
		var decoded any
		if err := yaml.UnmarshalStrict([]byte(document), &decoded); err != nil {
			message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
			problems = append(problems, "the block is not valid YAML: "+yamlLine.ReplaceAllString(message, ""))
			continue
		}
		keys, _ := decoded.(map[string]any)
		if inside, ok := keys["config"].(map[string]any); ok {
			keys = inside
		}
		problems = append(problems, checkStackKeys(keys)...)
	}
	return problems
}

func checkStackKeys(keys map[string]any) []string {
	get := func(key string) (string, bool) {
		value, ok := keys[key]
		if text, plain := value.(string); plain {
			return text, true
		}
		text, err := json.Marshal(value)
		return string(text), ok && err == nil
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(keys)), func(key string) bool { return strings.HasPrefix(key, keyPrefix) }) {
		return nil
	}
	_, err := config.Load(get, fstest.MapFS{})
	if err == nil {
		return nil
	}
	var problems []string
	for _, line := range strings.Split(err.Error(), "\n") {
		if shape.MatchString(line) {
			problems = append(problems, line)
		}
	}
	return problems
}

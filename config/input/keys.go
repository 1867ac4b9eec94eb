package input

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// StackFileValues returns the values in the file of a stack. It returns none if it cannot read the file,
// because the user may name another one with --config-file.
func StackFileValues(files fs.FS, project, stack string) Values {
	file, err := ReadStackFile(files, StackFileName(stack), project)
	if err != nil {
		return nil
	}
	return file.Config
}

// CheckKeys refuses what Pulumi ignores in the file of a stack, or reads as something else:
// keys that the program does not read, keys outside of config or in another namespace, keys
// that are there twice, a second document, octal numbers, and decimal modes of files. Like [StackFileValues], it skips a file that
// it cannot read.
func CheckKeys(files fs.FS, project, stack string, known []string) error {
	text, err := fs.ReadFile(files, StackFileName(stack))
	if err != nil {
		return nil
	}
	c := &keyChecker{project: project, known: known}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if decoder.Decode(&document) != nil || len(document.Content) == 0 {
		return nil
	}
	c.file(document.Content[0])
	// Only comments may follow the first document.
	if err := decoder.Decode(&second); err == nil && len(second.Content) > 0 && second.Content[0].Tag != "!!null" {
		c.Forbidden(field.NewPath(StackFileName(stack)), "has a second document in line %d, which Pulumi ignores; remove the line with --- before it", second.Content[0].Line)
	}
	return c.Err()
}

type keyChecker struct {
	Problems
	project string
	known   []string
}

// file checks the top level of a stack file.
func (c *keyChecker) file(file *yaml.Node) {
	c.twice(file, func(key string) *field.Path { return field.NewPath(key) })
	for i := 0; i+1 < len(file.Content); i += 2 {
		switch key := file.Content[i].Value; {
		case key == configuration:
			c.config(file.Content[i+1])
		case strings.EqualFold(key, configuration):
			c.Forbidden(field.NewPath(key), "is ignored by Pulumi; write %s in lower case", configuration)
		case slices.Contains(c.known, c.named(key)) || strings.HasPrefix(key, c.project+":"):
			c.Forbidden(field.NewPath(key), "is outside of %s, where Pulumi ignores it; indent it below %s", configuration, configuration)
		}
	}
}

// config checks the keys of the stack and their values.
func (c *keyChecker) config(config *yaml.Node) {
	// A key is the same with the namespace of the project and without.
	c.twice(config, func(key string) *field.Path { return field.NewPath(c.named(key)) })
	for i := 0; i+1 < len(config.Content); i += 2 {
		key := c.named(config.Content[i].Value)
		c.key(key)
		c.repeated(field.NewPath(key), config.Content[i+1])
	}
}

// key refuses an unknown key of the project, or of a namespace that resembles the project.
// Other namespaces belong to providers.
func (c *keyChecker) key(key string) {
	namespace, name, _ := strings.Cut(key, ":")
	ours := c.project + ":" + name
	switch near := Nearest(ours, c.known); {
	case slices.Contains(c.known, key):
	case slices.Contains(c.known, ours) && len(Nearest(namespace, []string{c.project})) > 0:
		c.Forbidden(field.NewPath(key), "is in the namespace %s, which nothing reads; write %s", namespace, ours)
	case namespace != c.project:
	case len(near) > 0:
		c.Forbidden(field.NewPath(key), "unknown key; did you mean %s?", Or(near))
	default:
		c.Forbidden(field.NewPath(key), "unknown key; remove it, as the keys are %s", And(c.known))
	}
}

// named returns a key with its namespace.
func (c *keyChecker) named(key string) string {
	if strings.Contains(key, ":") {
		return key
	}
	return c.project + ":" + key
}

// repeated refuses keys that a mapping at or below a path has more than once.
func (c *keyChecker) repeated(path *field.Path, node *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		c.twice(node, func(key string) *field.Path { return path.Child(key) })
		for i := 0; i+1 < len(node.Content); i += 2 {
			c.repeated(path.Child(node.Content[i].Value), node.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, element := range node.Content {
			c.repeated(path.Index(i), element)
		}
	}
}

// twice refuses keys that a mapping has more than once. At returns the path of a key.
func (c *keyChecker) twice(mapping *yaml.Node, at func(key string) *field.Path) {
	var keys []*yaml.Node
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		keys = append(keys, mapping.Content[i])
	}
	Unique(keys, func(key *yaml.Node) string { return at(key.Value).String() }, func(i, first int, _ string) {
		c.Duplicate(at(keys[i].Value), keys[i].Value, "is already in line %d, and only one of them counts; remove one", keys[first].Line)
	})
}

package input

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkText checks how the values of a file are written. A nil path is that of a stack file, of which Pulumi reads
// the first document. Text that is no YAML is left to the parser.
func checkText(p *Problems, at *field.Path, text []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for first := true; ; first = false {
		var document yaml.Node
		if decoder.Decode(&document) != nil || len(document.Content) == 0 {
			return
		}
		if top := document.Content[0]; at != nil || first {
			p.checkNode(at, top)
		} else if top.Tag != "!!null" {
			p.Forbidden(field.NewPath("---"), "begins a second document, which Pulumi ignores, in line %d; "+
				"remove the line ---", top.Line)
		}
	}
}

// octal matches numbers that YAML reads with the base 8.
var octal = regexp.MustCompile(`^[-+]?0[0-7]+$`)

// checkNode refuses what a parsed tree no longer shows: keys that are there twice, and numbers that YAML reads otherwise
// than people. The modes of files are octal for both.
func (p *Problems) checkNode(at *field.Path, node *yaml.Node) {
	lines := map[string]int{}
	for i, inner := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode:
			p.checkNode(at.Index(i), inner)
		case i%2 == 1:
			key := node.Content[i-1]
			path := at.Child(key.Value)
			if lines[key.Value] > 0 {
				p.Forbidden(path, "is in line %d and in line %d, and only one of them counts; remove one",
					lines[key.Value], key.Line)
			}
			lines[key.Value] = key.Line
			if at == nil && key.Value == configuration {
				path = nil // paths begin with the keys of the stack
			}
			if !strings.HasSuffix(strings.ToLower(key.Value), "mode") {
				p.checkNode(path, inner)
			}
		}
	}
	read, _ := strconv.ParseInt(node.Value, 0, 64)
	decimal, _ := strconv.ParseInt(node.Value, 10, 64)
	if node.Tag == "!!int" && octal.MatchString(node.Value) && read != decimal {
		p.Invalid(at, node.Value, "is octal, which makes it %d; write %d or %d", read, read, decimal)
	}
}

// Package notation checks what a parsed value no longer shows: how numbers are written in YAML.
package notation

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// octal matches numbers that YAML reads with the base 8.
var octal = regexp.MustCompile(`^[-+]?0[0-7]+$`)

// digitsOfModes are decimal numbers with the digits of a common mode of files, by the mode. The
// decimal number is another mode, which no file needs. Larger ones are above 0777, which
// a rule refuses.
var digitsOfModes = map[string]string{"400": "0400", "440": "0440", "444": "0444", "500": "0500"}

// Numbers refuses numbers at and below a path that YAML reads as another number than people do:
// octal ones, except for the modes of files, and decimal modes of files.
func Numbers(p *check.Problems, path *field.Path, node *yaml.Node) { numbers(p, path, node, false) }

func numbers(p *check.Problems, path *field.Path, node *yaml.Node, mode bool) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i].Value
			// The modes of files are octal in Kubernetes too.
			numbers(p, path.Child(key), node.Content[i+1], strings.HasSuffix(strings.ToLower(key), "mode"))
		}
	case yaml.SequenceNode:
		for i, element := range node.Content {
			numbers(p, path.Index(i), element, false)
		}
	case yaml.ScalarNode:
		if node.Tag == "!!int" {
			number(p, path, node.Value, mode)
		}
	}
}

func number(p *check.Problems, path *field.Path, text string, mode bool) {
	if mode {
		if meant, ok := digitsOfModes[text]; ok {
			decimal, _ := strconv.ParseInt(text, 10, 64)
			p.Invalid(path, text, "is decimal, which makes it the mode %#o; write %s", decimal, meant)
		}
		return
	}
	read, err := strconv.ParseInt(text, 0, 64)
	if err != nil || !octal.MatchString(text) {
		return
	}
	if decimal, err := strconv.ParseInt(text, 10, 64); err != nil || decimal != read {
		p.Invalid(path, text, "is octal, which makes it %d; write %d or %d", read, read, decimal)
	}
}

package reference

import (
	_ "embed"
	"slices"
	"strings"
)

// width is the line length of prose.
const width = 80

var (
	//go:embed introduction.md
	introduction string
	//go:embed nodepools.md
	aboutChanges string
)

// notes are additional texts for sections.
var notes = map[string]string{"persia:nodePools": aboutChanges}

// Markdown returns the page that describes a stack file.
func Markdown(sections []*Section) string {
	page := []string{introduction, keys(sections)}
	for _, s := range sections {
		if s.Kubernetes {
			continue
		}
		page = append(page, heading(s), about(s))
		if note := notes[s.Path]; note != "" {
			page = append(page, note)
		}
		if len(s.Fields) > 0 {
			page = append(page, fields(s.Fields))
		}
	}
	for i, block := range page {
		page[i] = strings.TrimSpace(block) + "\n"
	}
	return strings.Join(page, "\n")
}

// keys returns the table of keys.
func keys(sections []*Section) string {
	t := table{{"key", "value", "description"}}
	for _, s := range sections {
		if s.Key {
			t = append(t, []string{link(s.Path, anchor(s.Path)), inWords(s.Type), escaped(firstSentence(s.Doc))})
		}
	}
	return t.String()
}

func heading(s *Section) string {
	if s.Key {
		return "## " + s.Path
	}
	return "### " + s.Path
}

func about(s *Section) string {
	text := escaped(s.Doc)
	if s.Type.Kind != Object {
		text = "*" + capitalized(inWords(s.Type)) + ".* " + text
	}
	if len(s.Also) > 0 {
		text += " The same fields are at " + and(mapped(s.Also, code)) + "."
	}
	return wrapped(text, width)
}

// fields returns the table of an object's fields, with what a change does if that is known.
func fields(fs []Field) string {
	changes := slices.ContainsFunc(fs, func(f Field) bool { return f.Change != "" })
	row := func(name, typ, change, text string) []string {
		if changes {
			return []string{name, typ, change, text}
		}
		return []string{name, typ, text}
	}
	t := table{row("field", "type", "when changed", "description")}
	for _, f := range fs {
		t = append(t, row(code(f.Name), fieldType(f), f.Change, description(f)))
	}
	return t.String()
}

// fieldType returns the type of a field, with a link to its description.
func fieldType(f Field) string {
	text, inner := inWords(f.Type), f.Type.innermost()
	switch {
	case inner.URL != "":
		text += " (" + link(inner.Kubernetes, inner.URL) + ")"
	case inner.Section != "":
		text = link(text, anchor(inner.Section))
	}
	if f.Required {
		text += ", required"
	}
	return text
}

// description returns the description of a field and its values.
func description(f Field) string {
	sentences := []string{escaped(f.Doc)}
	for _, v := range f.Type.Values {
		if v.Doc != "" {
			sentences = append(sentences, code(v.Text)+" "+escaped(v.Doc))
		}
	}
	return strings.Join(sentences, " ")
}

// inWords returns a type in words, like list of objects.
func inWords(t Type) string {
	switch t.Kind {
	case List:
		return "list of " + plural(*t.Elem)
	case Map:
		return plural(*t.Elem) + " by name"
	}
	return string(t.Kind)
}

func plural(t Type) string {
	switch t.Kind {
	case List:
		return "lists of " + plural(*t.Elem)
	case Map:
		return "sets of " + plural(*t.Elem) + " by name"
	case Quantity:
		return "quantities"
	case Boolean:
		return string(Boolean)
	}
	return string(t.Kind) + "s"
}

// table is a table in Markdown. Its first row is the header.
type table [][]string

func (t table) String() string {
	lines := make([]string, 0, len(t)+1)
	for _, cells := range t {
		lines = append(lines, "| "+strings.Join(mapped(cells, inCell), " | ")+" |")
	}
	rule := "|" + strings.Repeat(" --- |", len(t[0]))
	return strings.Join(slices.Insert(lines, 1, rule), "\n")
}

func mapped(texts []string, f func(string) string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = f(text)
	}
	return out
}

package reference

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"persia/config"
	"persia/config/input"
)

var (
	//go:embed introduction.md
	introduction string
	//go:embed nodepools.md
	aboutChanges string
)

// writer holds the page while it is written.
type writer struct {
	*Reference
	strings.Builder
	// at is the section of each object, by the name of its definition, and said the section with each
	// description of a field, with and without its name.
	at, said map[string]string
}

// page returns the page that describes a stack file.
func (r *Reference) page() string {
	w := &writer{Reference: r, at: map[string]string{}, said: map[string]string{}}
	var keys []string
	stack := r.definitions["Stack"].Properties
	for _, key := range config.Keys() {
		value, _ := stack.Get(key)
		w.find(key, value)
		keys = append(keys, link(key, key))
	}
	w.WriteString(introduction + "\nKeys: " + strings.Join(keys, ",\n") + ".\n")
	for _, key := range config.Keys() {
		value, _ := stack.Get(key)
		w.section(key, value)
	}
	return w.String()
}

// find finds the sections of the objects in a value: each is where the object is first.
func (w *writer) find(path string, value *schema) {
	name := nameIn(innermost(value))
	if t := w.types[name]; t == nil || !isOwn(t) || w.at[name] != "" {
		return
	}
	w.at[name] = path
	for _, f := range w.fields(name) {
		w.find(path+inside(value)+"."+f.name, f.value)
	}
}

// inside is how a path goes on into a list or a map.
func inside(value *schema) string {
	switch {
	case value.Items != nil:
		return "[]" + inside(value.Items)
	case value.AdditionalProperties != nil:
		return "[NAME]" + inside(value.AdditionalProperties)
	}
	return ""
}

// section writes the section of a value, and of the objects in it.
func (w *writer) section(path string, value *schema) {
	isKey, name := !strings.Contains(path, "."), nameIn(innermost(value))
	if !isKey && w.at[name] != path {
		return
	}
	// The row of the object says what it is, and the first sentence of its type repeats that.
	about := w.object(value).Description
	about = strings.TrimSpace(strings.TrimPrefix(about, firstSentence(about)))
	text := "\n### " + path + "\n"
	if about != "" {
		text += "\n" + escaped(about) + "\n"
	}
	if isKey {
		text = "\n## " + path + "\n\n*" + capitalized(w.words(value)) + ".* " + escaped(value.Description) + "\n"
	}
	if path == "persia:nodePools" {
		text += "\n" + aboutChanges
	}
	if w.at[name] != path {
		w.WriteString(text)
		return
	}
	fields := w.fields(name)
	changes := slices.ContainsFunc(fields, func(f field) bool { return f.Tag.Get("change") != "" })
	rows := [][]string{{"field", "type", "when changed", "description"}, {"---", "---", "---", "---"}}
	elsewhere := map[string][]string{} // fields, by the section that describes them
	for _, f := range fields {
		description, said := w.description(path, f)
		if said != "" {
			elsewhere[said] = append(elsewhere[said], "`"+f.name+"`")
			continue
		}
		kind := w.words(f.value)
		if slices.Contains(w.definitions[name].Required, f.name) {
			kind += ", required"
		}
		rows = append(rows, []string{"`" + f.name + "`", kind, f.Tag.Get("change"), description})
	}
	for _, row := range rows {
		if !changes {
			row = slices.Delete(row, 2, 3)
		}
		if len(rows) > 2 {
			text += "\n| " + strings.Join(row, " | ") + " |"
		}
	}
	for _, said := range slices.Sorted(maps.Keys(elsewhere)) {
		text += "\n\nAs in " + link(said, said) + ": " + strings.Join(elsewhere[said], ", ") + "."
	}
	w.WriteString(strings.ReplaceAll(text, "\n\n\n", "\n\n") + "\n")
	for _, f := range fields {
		w.section(path+inside(value)+"."+f.name, f.value)
	}
}

// words returns a type in words, with a link to its description.
func (w *writer) words(value *schema) string {
	name := nameIn(value)
	switch of := w.types[name]; {
	case of != nil && isOwn(of):
		return link("object", w.at[name])
	case of != nil:
		return of.Name()
	case value.AnyOf != nil:
		return w.words(value.AnyOf[0])
	case value.Pattern == input.QuantityForm:
		return "quantity"
	case value.Items != nil:
		return "list of " + w.words(value.Items)
	case value.AdditionalProperties != nil:
		return "map of " + w.words(value.AdditionalProperties)
	case value.Type == "string":
		return "text"
	case value.Type == "":
		return "value"
	}
	return value.Type
}

func link(text, section string) string { return "[" + text + "](" + anchor(section) + ")" }

var (
	// unsaid are defaults that the introduction gives for all fields.
	unsaid = strings.NewReplacer(" Default none.", "", " Default false.", "", "|", `\|`)
	// leading is an article at the beginning of a description.
	leading = regexp.MustCompile(`^(The|A|An) `)
)

// description returns the description of a field, or the section that already has it.
func (w *writer) description(path string, f field) (description, said string) {
	text, _, _ := strings.Cut(f.value.Description, " Default")
	if said := w.said[f.name+text]; said != "" {
		return "", said
	}
	w.said[f.name+text], w.said[text] = path, path
	return escaped(capitalized(leading.ReplaceAllString(unsaid.Replace(f.value.Description), ""))), ""
}

// oneLine joins the lines of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

var sentenceEnd = regexp.MustCompile(`\. [A-Z]`)

func firstSentence(text string) string {
	if end := sentenceEnd.FindStringIndex(text); end != nil {
		return text[:end[0]+1]
	}
	return text
}

// withoutSubject removes the name that a doc comment begins with: "Nodes is the number of nodes"
// becomes "The number of nodes".
func withoutSubject(name, text string) string {
	predicate, ok := strings.CutPrefix(text, name+" ")
	if !ok {
		return text
	}
	return capitalized(strings.TrimPrefix(strings.TrimPrefix(predicate, "is "), "are "))
}

func capitalized(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

var special = regexp.MustCompile(`[\\*<[\]]`)

// escaped escapes a text for Markdown, except code in backticks.
func escaped(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = special.ReplaceAllString(parts[i], `\$0`)
	}
	return strings.Join(parts, "`")
}

// anchor returns the anchor of a heading on GitHub.
func anchor(heading string) string {
	return "#" + strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

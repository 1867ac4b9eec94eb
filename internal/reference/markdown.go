package reference

import (
	_ "embed"
	"regexp"
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
	//go:embed pedl.md
	aboutPEDL string
)

// notes are additional texts for sections.
var notes = map[string]string{"persia:nodePools": aboutChanges}

const (
	mainPage = "configuration.md"
	pedlPage = "pedl.md"
)

// pageOf returns the page that has a section. PEDL's fields have their own page.
func pageOf(section string) string {
	if section == "persia:pedl" || strings.HasPrefix(section, "persia:pedl.") {
		return pedlPage
	}
	return mainPage
}

// Pages returns the pages that describe a stack file, by their names in docs/reference.
func Pages(sections []*Section) map[string]string {
	blocks := map[string][]string{mainPage: {introduction, keys(sections)}, pedlPage: {aboutPEDL}}
	pages, at := map[string]string{}, map[string]string{}
	for _, s := range sections {
		at[anchor(s.Path)] = pageOf(s.Path)
	}
	for name, texts := range described(sections) {
		texts = append(blocks[name], texts...)
		for i, block := range texts {
			texts[i] = strings.TrimSpace(block) + "\n"
		}
		pages[name] = sameFolder.ReplaceAllStringFunc(strings.Join(texts, "\n"), func(target string) string {
			to := sameFolder.FindStringSubmatch(target)[1]
			if other, known := at[to]; known && other != name {
				return "](" + other + to + ")"
			}
			return target
		})
	}
	return pages
}

// sameFolder is a link to an anchor.
var sameFolder = regexp.MustCompile(`\]\((#[^)]*)\)`)

// described returns the sections as blocks of Markdown, by page.
func described(sections []*Section) map[string][]string {
	page := map[string][]string{}
	said := descriptions(sections)
	var above []*Section
	for _, s := range sections {
		if s.Kubernetes {
			continue
		}
		text := []string{heading(s), about(s, said), notes[s.Path], borrowing(s, above)}
		name := pageOf(s.Path)
		page[name] = append(page[name], slices.DeleteFunc(text, func(t string) bool { return t == "" })...)
		if len(s.Fields) > 0 {
			page[name] = append(page[name], fields(withoutBorrowed(s, above)))
		}
		above = append(above, s)
	}
	return page
}

// keys lists the keys.
func keys(sections []*Section) string {
	var all []string
	for _, s := range sections {
		if s.Key {
			all = append(all, link(s.Path, anchor(s.Path)))
		}
	}
	return "Keys: " + strings.Join(all, ",\n") + "."
}

func heading(s *Section) string {
	if s.Key {
		return "## " + s.Path
	}
	return "### " + s.Path
}

// descriptions returns the descriptions of all fields, which the sections of objects need not
// repeat.
func descriptions(sections []*Section) map[string]bool {
	said := map[string]bool{}
	for _, s := range sections {
		for _, f := range s.Fields {
			said[f.Doc] = true
		}
	}
	return said
}

// about returns the description of a section, without a first sentence that the table with its
// field has.
func about(s *Section, said map[string]bool) string {
	doc, kind := s.Doc, ""
	if s.Key {
		if s.Type.Kind != Object {
			kind = "*" + capitalized(inWords(s.Type)) + ".* "
		}
	} else if first := firstSentence(doc); said[first] {
		doc = strings.TrimSpace(strings.TrimPrefix(doc, first))
	}
	return wrapped(kind+escaped(doc), width)
}

// fewest is how many fields a section must share with another to refer to it.
const fewest = 4

// lender returns the section above that has the most fields of s, or nil if no section has
// enough of them.
func lender(s *Section, above []*Section) *Section {
	var most *Section
	count := fewest - 1
	for _, other := range above {
		if n := len(s.Fields) - len(slices.DeleteFunc(slices.Clone(s.Fields), other.describes)); n > count {
			most, count = other, n
		}
	}
	return most
}

func borrowing(s *Section, above []*Section) string {
	other := lender(s, above)
	if other == nil {
		return ""
	}
	return wrapped("Fields without a description are described at "+link(other.Path, anchor(other.Path))+".", width)
}

// withoutBorrowed returns the fields of a section, without the descriptions that the section
// above has.
func withoutBorrowed(s *Section, above []*Section) []Field {
	other := lender(s, above)
	if other == nil {
		return s.Fields
	}
	fs := slices.Clone(s.Fields)
	for i, f := range fs {
		if other.describes(f) {
			fs[i].Doc, fs[i].Type.Values = "", nil
		}
	}
	return fs
}

// describes reports whether the section has a field with the same name and description. Only the
// section's own field may have a default.
func (s *Section) describes(f Field) bool {
	return slices.ContainsFunc(s.Fields, func(other Field) bool {
		withoutDefault, _, _ := strings.Cut(other.Doc, " Default")
		return other.Name == f.Name && (other.Doc == f.Doc || withoutDefault == f.Doc)
	})
}

// fields returns the table of an object's fields, with the effect of a change if it is known.
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
	case inner.URL != "" && f.Type.Kind == List:
		text = "list of " + link(inner.Kubernetes, inner.URL)
	case inner.URL != "":
		text = link(inner.Kubernetes, inner.URL)
	case inner.Section != "":
		text = link(text, anchor(inner.Section))
	}
	if f.Required {
		text += ", required"
	}
	return text
}

// unsaid are defaults that the introduction gives for all fields.
var unsaid = strings.NewReplacer(" Default none.", "", " Default false.", "")

// leading is an article at the beginning of a description.
var leading = regexp.MustCompile(`^(The|A|An) `)

// description returns the description of a field and its values.
func description(f Field) string {
	sentences := []string{escaped(capitalized(leading.ReplaceAllString(unsaid.Replace(f.Doc), "")))}
	for _, v := range f.Type.Values {
		if v.Doc != "" {
			sentences = append(sentences, code(v.Text)+" "+escaped(v.Doc))
		}
	}
	return strings.Join(sentences, " ")
}

// inWords returns a type in words, like object. A list is a plural.
func inWords(t Type) string {
	switch t.Kind {
	case List:
		return plural(*t.Elem)
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

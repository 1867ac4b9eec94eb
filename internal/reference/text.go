package reference

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

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

var (
	// words matches single words and code in backticks.
	words = regexp.MustCompile("`[^`]*`" + `|\b[A-Za-z]\w*`)
	// compound matches names that are not English words: MaxSurge, CSIDrivers.
	compound = regexp.MustCompile(`[a-z][A-Z]|[A-Z]{3}[a-z]{2}`)
	// plain matches names that may be English words: Nodes, but not GPU.
	plain = regexp.MustCompile(`^[A-Z][a-z]+$`)
	// joint matches the text between two names of a list.
	joint = regexp.MustCompile(`^(, |,? (and|or) )$`)
	// start matches the text before the first word of a sentence, or an article.
	start = regexp.MustCompile(`(?i)(^|[.:] |\b(a|an|the) )$`)
)

// inYAML replaces the Go names of fields in a comment on a type with their YAML names. A name
// that is also an English word means the field only in the middle of a sentence and without an
// article. A name like GPU means the field only in a list of names.
func (r *Reference) inYAML(text string, t reflect.Type) string {
	names := maps.Clone(r.shared)
	for _, f := range fieldsOf(t) {
		names[f.Name] = f.name
	}
	places := slices.DeleteFunc(words.FindAllStringIndex(text, -1), func(at []int) bool {
		return names[text[at[0]:at[1]]] == ""
	})
	listed := func(i int) bool {
		return i >= 0 && i+1 < len(places) && joint.MatchString(text[places[i][1]:places[i+1][0]])
	}
	var b strings.Builder
	end := 0
	for i, at := range places {
		name := text[at[0]:at[1]]
		if compound.MatchString(name) || listed(i-1) || listed(i) ||
			plain.MatchString(name) && !start.MatchString(text[:at[0]]) {
			b.WriteString(text[end:at[0]] + "`" + names[name] + "`")
			end = at[1]
		}
	}
	return b.String() + text[end:]
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

package reference

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine joins the lines of a text.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// firstParagraph returns the first paragraph of a doc comment in one line. Further paragraphs
// are for readers of the source.
func firstParagraph(text string) string {
	paragraph, _, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	return oneLine(paragraph)
}

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
	predicate = strings.TrimPrefix(predicate, "is ")
	predicate = strings.TrimPrefix(predicate, "are ")
	return capitalized(predicate)
}

func capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// names maps the Go names of fields to their YAML names.
type names map[string]string

// and adds names, which take precedence over existing ones.
func (n names) and(others names) names {
	all := maps.Clone(n)
	maps.Copy(all, others)
	return all
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

// inYAML replaces the Go names of fields in a text with their YAML names. A name that is also an
// English word means the field only in the middle of a sentence and without an article. A name
// like GPU means the field only in a list of names.
func (n names) inYAML(text string) string {
	places := slices.DeleteFunc(words.FindAllStringIndex(text, -1), func(at []int) bool {
		return n[text[at[0]:at[1]]] == ""
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
			b.WriteString(text[end:at[0]] + code(n[name]))
			end = at[1]
		}
	}
	return b.String() + text[end:]
}

func code(text string) string { return "`" + text + "`" }

var special = regexp.MustCompile(`[\\*<[\]]`)

// escaped escapes a text for Markdown, except code in backticks.
func escaped(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = special.ReplaceAllString(parts[i], `\$0`)
	}
	return strings.Join(parts, "`")
}

// inCell escapes Markdown for a table cell.
func inCell(text string) string {
	return strings.ReplaceAll(text, "|", `\|`)
}

// wrapped breaks a text at spaces into lines of at most width characters.
func wrapped(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+length > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}

// anchor returns the anchor of a heading on GitHub.
func anchor(heading string) string {
	return "#" + strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func link(text, to string) string { return "[" + text + "](" + to + ")" }

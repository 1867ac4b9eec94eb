package reference

import (
	"regexp"
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

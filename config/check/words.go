package check

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest returns at most four candidates at the smallest edit distance from a misspelt word,
// in their order. It returns none if they differ in more than a third of the word.
func Nearest(word string, candidates []string) []string {
	return nearest(word, candidates, max(2, len(word)/3))
}

// Typo returns at most four candidates from which a word differs in one or two letters, or
// none if it is a candidate itself.
func Typo(word string, candidates []string) []string {
	if slices.Contains(candidates, word) {
		return nil
	}
	return nearest(word, candidates, min(2, len(word)/3))
}

// nearest returns the candidates at the smallest edit distance, which is at most least.
func nearest(word string, candidates []string, least int) []string {
	var near []string
	for _, c := range candidates {
		switch d := levenshtein.Distance(strings.ToLower(word), strings.ToLower(c), nil); {
		case d < least:
			least, near = d, []string{c}
		case d == least:
			near = append(near, c)
		}
	}
	return near[:min(4, len(near))]
}

// Words returns the word of each element, for example for [Or].
func Words[E any](list []E, word func(E) string) []string {
	words := make([]string, len(list))
	for i, element := range list {
		words[i] = word(element)
	}
	return words
}

// Or joins words as "a, b or c".
func Or(words []string) string { return enumerate(words, " or ") }

// And joins words as "a, b and c".
func And(words []string) string { return enumerate(words, " and ") }

func enumerate(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + conjunction + words[last]
}

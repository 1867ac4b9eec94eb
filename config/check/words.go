package check

import "strings"

// Nearest returns the candidates that a misspelt word is most likely meant to
// be, in their order: those at the least edit distance, at most four of them.
// There are none if even these differ in more than a third of the word.
func Nearest(word string, candidates []string) []string {
	least := max(2, len(word)/3)
	var near []string
	for _, c := range candidates {
		switch d := distance(strings.ToLower(word), strings.ToLower(c)); {
		case d < least:
			least, near = d, []string{c}
		case d == least:
			near = append(near, c)
		}
	}
	return near[:min(4, len(near))]
}

// distance is the number of letters to insert, delete or replace to make one
// word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Or joins alternatives: "a, b or c".
func Or(words []string) string { return enumerate(words, " or ") }

// And joins what belongs together: "a, b and c".
func And(words []string) string { return enumerate(words, " and ") }

func enumerate(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + conjunction + words[last]
}

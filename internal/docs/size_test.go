package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// mostWords limits all pages in docs/ together, with tables, code blocks, and the
	// generated reference.
	mostWords = 30_000
	// mostLines limits README.md.
	mostLines = 100
)

func TestLength(t *testing.T) {
	words := 0
	for _, name := range pageFiles(t) {
		if strings.HasPrefix(name, "docs"+string(filepath.Separator)) {
			words += countWords(string(readPage(t, name).source))
		}
	}
	t.Logf("%d words", words)
	assert.Greater(t, words, mostWords/2, "the count misses pages")
	assert.LessOrEqual(t, words, mostWords, "docs/ is too long; shorten a page")

	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	assert.LessOrEqual(t, bytes.Count(readme, []byte("\n")), mostLines, "README.md is too long; move a part to docs/")
}

// countWords counts what spaces separate and has a letter or a digit: no bars and rules of
// tables.
func countWords(text string) int {
	words := 0
	for _, word := range strings.Fields(text) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			words++
		}
	}
	return words
}

func TestCountWords(t *testing.T) {
	for text, want := range map[string]int{
		"":                             0,
		"| a | `b c` |\n| --- | --- |": 3,
		"## 1. Programs — *new*":       3,
		"[a link](x.md), and 16Gi":     4,
	} {
		assert.Equal(t, want, countWords(text), "%q", text)
	}
}

package docs

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNamesOfTests: a test that a page names exists, and the pages for users name none.
func TestNamesOfTests(t *testing.T) {
	tests := definedTests(t)
	for _, page := range pageFiles(t) {
		for _, match := range regexp.MustCompile(`\bTest[A-Z]\w*`).FindAll(readPage(t, page).source, -1) {
			name := string(match)
			assert.NotZero(t, tests[name], "%s names %s", page, name)
			assert.NotContains(t, userPages(t), page, "put %s into testdata/promises.json", name)
		}
	}
}

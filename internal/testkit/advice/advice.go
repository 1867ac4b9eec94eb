// Package advice does what messages about mistakes say.
package advice

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// value is a value in advice. Advice is a part of a problem or a warning that says what to write at its path or, with a
// name, in an object around it, or what to remove there. The first group marks examples and limits.
const value = `(?:\[[^\],]+\]|"[^"]+"|[/0-9A-Z][^\s,;?]*|[a-z]+\d*[-/][^\s,;?]*|statefulset|jobset|true|full)`

var advice = regexp.MustCompile(`\b(?:write(?: one of)?|(must be(?: a quantity)?(?: at (?:least|most)| from)?|like|supports)) ` +
	`(?:([a-z][\w.]*): )?(` + value + `(?:(?:,| to|,? or) ` + value + `)*)(, and remove gpu)?|` +
	`\b(?:remove|omit) (?:it|one|the (?:label|pool|taint|variable)|(persia:[^\s,;]+|\w+))`)

var meant = regexp.MustCompile(`did you mean (?:persia:)?(\w+)|put it in quotes`)

// Follow follows each advice in a line about a mistake, a value at a path. After tells how bad a stack file is after edits,
// and its problems. Advice makes it better; an example or a limit is at least not refused at the path.
func Follow(t *testing.T, path, line string, mistake any, after func(edits map[string]any) (bad int, says string)) {
	t.Helper()
	before, _ := after(nil)
	for _, match := range advice.FindAllStringSubmatch(line, -1) {
		for _, text := range regexp.MustCompile(`,? or |, | to `).Split(match[3], -1) {
			solved, value, name := false, any(nil), match[2]+match[5]
			require.NoError(t, yaml.Unmarshal([]byte(strings.TrimSuffix(text, ":")), &value))
			for outer := path; strings.ContainsAny(outer, ".[") && !solved; outer = outer[:strings.LastIndexAny(outer, ".[")] {
				at := regexp.MustCompile(`^.*(persia:)|\.$`).ReplaceAllString(outer+"."+name, "$1") // a name may be a whole path
				edits := map[string]any{at: value}
				if match[4] != "" {
					edits[outer+".gpu"] = nil
				}
				bad, says := after(edits)
				solved = bad < before || match[1] != "" && !strings.Contains(says, "\n"+path+": ")
				if name == "" && !strings.Contains(match[0], " the ") {
					break
				}
			}
			assert.True(t, solved, "%s of %s", text, line)
		}
	}
	if match := meant.FindStringSubmatch(line); match != nil && mistake != nil {
		edits := map[string]any{path: fmt.Sprint(mistake)}
		if match[1] != "" {
			edits = map[string]any{path: nil, path[:strings.LastIndexAny(path, ".:")+1] + match[1]: mistake}
		}
		_, says := after(edits)
		assert.NotContains(t, says, "\n"+path+": ", "%s of %s", match[0], line)
	}
}

package testkit

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config"
)

// Refusal is a mistake and its error: the path, and parts of the line, such as the value and the remedy.
type Refusal = struct {
	Name  string
	Edits Edits
	Path  string
	Says  []string
}

// Refused makes each mistake in an otherwise valid stack file. Each leads to one problem, unless the name of the case
// is in leadToMore. The problem shows the value at its path, unless it is a password.
func Refused(t *testing.T, cases []Refusal, leadToMore ...string) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			_, err := Load(t, c.Edits)
			Says(t, err, c.Path, c.Says...)
			assertAdvice(t, c.Edits, c.Path, err)
			switch value := c.Edits[c.Path].(type) {
			case string, bool, int, float64:
				if !strings.HasSuffix(c.Path, ".password") {
					Says(t, err, c.Path, fmt.Sprint(value))
				}
			}
			if !slices.Contains(leadToMore, c.Name) {
				assert.Equal(t, 1, strings.Count(err.Error(), "\n"), "one mistake, one problem: %s", err)
			}
		})
	}
}

// Accepted makes edits by name in a stack file that stays valid.
func Accepted(t *testing.T, cases map[string]Edits) {
	t.Helper()
	for name, changes := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Load(t, changes)
			assert.NoError(t, err)
		})
	}
}

// advice is a part of an error that says what to write at its path or, with a name, in an object around it, or to remove it.
var advice = regexp.MustCompile(`\bwrite (?:([a-z][\w.]*): )?([/0-9A-Z][^\s,;]*|[a-z]+\d*-[^\s,;]*|statefulset|true|\[[A-Z]\w+\])` +
	`(, and remove gpu)?|\b(?:remove|omit) (?:it|gpu)\b`)

// assertAdvice follows each advice of a problem, after which there are fewer problems.
func assertAdvice(t *testing.T, mistake Edits, path string, err error) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(path) + `: .*`).FindString(err.Error())
	for _, match := range advice.FindAllStringSubmatch(line, -1) {
		solved := false
		for outer := path; strings.ContainsAny(outer, ".[") && !solved; outer = outer[:strings.LastIndexAny(outer, ".[")] {
			keys, at, value := Parse(t, Base), strings.TrimSuffix(outer+"."+match[1], "."), any(nil)
			mistake.In(t, keys)
			require.NoError(t, yaml.Unmarshal([]byte(match[2]), &value))
			keys.Set(at, value)
			if match[3] != "" {
				keys.Set(outer+".gpu", nil)
			}
			_, left := config.Load(keys.Get, embed.FS{})
			solved = left == nil || strings.Count(left.Error(), "\n") < strings.Count(err.Error(), "\n")
			if match[1] == "" {
				break
			}
		}
		assert.True(t, solved, "%s of %s", match[0], line)
	}
}

// Warned makes each mistake in a stack file that is valid otherwise. The program accepts the
// file, and warns at the path with all parts. Without parts, it has no warning there.
func Warned(t *testing.T, cases []Refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			s, err := Load(t, c.Edits)
			require.NoError(t, err)
			var found []string
			for _, warning := range slices.Concat(s.Warnings(), s.FirstWarnings()) {
				if strings.HasPrefix(warning, c.Path+": ") {
					found = append(found, warning)
				}
			}
			if c.Says == nil {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1, "warnings at %s of %q", c.Path, s.Warnings())
			for _, part := range c.Says {
				assert.Contains(t, found[0], part)
			}
		})
	}
}

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

	"persia/config"
	"persia/internal/testkit/advice"
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
			assertAdvice(t, c.Edits, c.Path, regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(c.Path)+`: .*`).FindString(err.Error()))
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

// assertAdvice follows each advice about a mistake. Then there are fewer problems or, without any, fewer warnings.
func assertAdvice(t *testing.T, mistake Edits, path, line string) {
	t.Helper()
	advice.Follow(t, path, line, mistake[path], func(edits map[string]any) (bad int, says string) {
		keys := Parse(t, Base)
		mistake.In(t, keys)
		Edits(edits).In(t, keys)
		s, err := config.Load(keys.Get, embed.FS{})
		if err != nil {
			return 1000 * strings.Count(err.Error(), "\n"), err.Error()
		}
		return len(s.Warnings()) + len(s.FirstWarnings()), ""
	})
}

// Warned makes each mistake in a stack file that is valid otherwise. The program accepts the
// file, and warns at the path with all parts. Without parts, it has no warning there.
func Warned(t *testing.T, cases []Refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			s := Must(Load(t, c.Edits))(t)
			elsewhere := func(warning string) bool { return !strings.HasPrefix(warning, c.Path+": ") }
			found := slices.DeleteFunc(slices.Concat(s.Warnings(), s.FirstWarnings()), elsewhere)
			if c.Says == nil {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1, "warnings at %s of %q", c.Path, s.Warnings())
			assertAdvice(t, c.Edits, c.Path, found[0])
			for _, part := range c.Says {
				assert.Contains(t, found[0], part)
			}
		})
	}
}

package skiptest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// called is a test that records how it ends.
type called struct {
	testing.TB
	end string
}

func (c *called) Helper() {}

func (c *called) Skip(args ...any) { c.end += "skipped: " + fmt.Sprint(args...) }

// Fatalf ends a test, so nothing runs after it.
func (c *called) Fatalf(format string, args ...any) {
	c.end = "failed: " + fmt.Sprintf(format, args...)
	panic(c)
}

func TestSkip(t *testing.T) {
	for name, test := range map[string]struct{ ci, want string }{
		"on a developer's machine":  {"", "skipped: no gcloud"},
		"in continuous integration": {"true", "failed: continuous integration skips no test: no gcloud"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CI", test.ci)
			c := &called{}
			func() {
				defer func() { _ = recover() }()
				Skip(c, "no gcloud")
			}()
			assert.Equal(t, test.want, c.end)
		})
	}
}

package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestPlanWidth: a comment on GitHub shows 100 characters of a code block without scrolling.
func TestPlanWidth(t *testing.T) {
	for _, file := range programtest.StackFiles(t) {
		t.Run(file, func(t *testing.T) {
			configuration := programtest.ReadStackFile(t, file)
			stack, err := config.Load(func(key string) (string, bool) {
				value, ok := configuration[key]
				return value, ok
			}, os.DirFS(filepath.Join(testkit.Root(t), filepath.Dir(file))))
			require.NoError(t, err)
			for line := range strings.Lines(stack.Plan().String()) {
				line = strings.TrimSuffix(line, "\n")
				assert.LessOrEqual(t, utf8.RuneCountInString(line), 100, line)
				assert.Equal(t, strings.TrimRight(line, " "), line)
			}
		})
	}
}

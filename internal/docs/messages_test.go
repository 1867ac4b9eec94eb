package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// messagePages are the sections whose tables quote messages of this repository's programs.
var messagePages = map[string][]string{
	"docs/reference/troubleshooting.md": {"The stack file", "Storage", "Roles", "The end of a training job", "The sandbox"},
	"docs/guides/capacity.md":           {"When a stack is refused"},
}

// otherMessages are quoted in these sections too: other programs print them, so no file here has
// them.
var otherMessages = []string{
	"Stack '…' is missing configuration values",
	"yaml: line 12: mapping values are not allowed in this context",
	"resource 'projects/…/networks/…' does not exist",
	"inputs to import do not match the existing resource",
	"only dynamically provisioned pvc can be resized",
	"persia-launcher: command not found",
	"Permission denied",
	"failed to get replica info of embedding servers",
	"0/1",
	"ForwardBufferFull",
	"NNWorkerBufferFullError",
	"ForwardIdNotFound",
	"unhandled system error",
	"Connection timed out",
}

// values matches the values in a message, and the separators of its parts.
var values = regexp.MustCompile("[…×;:,()]|\"[^\"]*\"|\\S*\\d\\S*|\\S*://\\S*|\\b[A-Z]\\b")

// TestQuotedMessages: every message that the pages quote is one that a program here prints.
func TestQuotedMessages(t *testing.T) {
	sources := strings.NewReplacer(`\"`, `"`, "`", "").Replace(joined.ReplaceAllString(messageSources(t), ""))
	found := map[string]bool{}
	for name, sections := range messagePages {
		text := string(readPage(t, filepath.FromSlash(name)).source)
		for _, section := range sections {
			messages := quotedMessages(text, section)
			assert.NotEmpty(t, messages, "%s: the section %s quotes nothing", name, section)
			for _, message := range messages {
				printed := prints(sources, message)
				found[message] = printed
				if !printed && !slices.Contains(otherMessages, message) {
					t.Errorf("%s, %s: no program prints %q; quote what it prints", name, section, message)
				}
			}
		}
	}
	for _, message := range otherMessages {
		printed, quoted := found[message]
		assert.True(t, quoted && !printed, "remove %q from otherMessages: it is printed here, or no longer quoted", message)
	}
}

// quotedMessages are the code spans in the first column of a section's tables.
func quotedMessages(page, section string) []string {
	_, text, _ := strings.Cut(page, "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var messages []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], " | ")
		for i, part := range strings.Split(cell, "`") {
			if i%2 == 1 {
				messages = append(messages, part)
			}
		}
	}
	return messages
}

// prints reports whether the sources have each part of a message. Two words alone may have a
// value between them that this test takes for a word.
func prints(sources, message string) bool {
	longest := 0
	for _, part := range values.Split(message, -1) {
		part = strings.Trim(part, " .?")
		switch known := strings.Contains(sources, part); {
		case known:
			longest = max(longest, len(part))
		case len(strings.Fields(part)) > 2:
			return false
		}
	}
	return longest > 1
}

// joined is where a source continues a text on the next line.
var joined = regexp.MustCompile("[\"`]\\s*\\+\\s*[\"`]|\"\\s*\\n\\s*f?\"|\\\\n")

// messageSources are the programs of this repository, as text.
func messageSources(t *testing.T) string {
	t.Helper()
	var sources strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(notPages, entry.Name()) && entry.Name() != "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, "_test.go") || !slices.Contains([]string{".go", ".py", ".sh"}, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		sources.Write(text)
		return err
	}))
	return sources.String()
}

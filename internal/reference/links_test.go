package reference

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/internal/testkit"
)

var (
	linkTo  = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)
	title   = regexp.MustCompile(`(?m)^(?:#+ +(.*)|<a id="(.*)"></a>)$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks checks that links between the pages of the repository lead to a file and to a heading.
func TestLinks(t *testing.T) {
	list := testkit.Must(exec.Command("git", "-C", "../..", "ls-files", "*.md").Output())(t)
	for _, page := range strings.Fields(string(list)) {
		if filepath.Dir(page) == "internal/reference" {
			continue // parts of a page in docs/reference
		}
		for _, match := range linkTo.FindAllStringSubmatch(testkit.Read(t, "../../"+page), -1) {
			to, err := url.Parse(match[1] + match[2])
			if !assert.NoError(t, err, page) || to.Scheme != "" {
				continue
			}
			target := page
			if to.Path != "" {
				target = filepath.Join(filepath.Dir(page), to.Path)
				_, err := os.Stat(filepath.Join("../..", target))
				assert.NoError(t, err, page)
			}
			if to.Fragment != "" && filepath.Ext(target) == ".md" {
				assert.Contains(t, anchors(testkit.Read(t, "../../"+target)), to.Fragment, "%s links to %s", page, target)
			}
		}
	}
}

// anchors returns the names that GitHub gives to the headings of a page.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for _, match := range title.FindAllStringSubmatch(page, -1) {
		name := dropped.ReplaceAllString(strings.ToLower(linked.ReplaceAllString(match[1]+match[2], "$1")), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}

// Package docs tests the pages of the repository: that their links, anchors,
// commands, keys and paths are there, and that their YAML is YAML.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// notPages are directories whose Markdown files are no pages: test data, the parts of the
// configuration reference, and ignored files.
var notPages = []string{".git", ".sandbox", "bin", "dist", "node_modules", "testdata", filepath.Join("internal", "reference")}

func TestPages(t *testing.T) {
	about := readRepository(t)
	for _, name := range pageFiles(t) {
		for _, problem := range about.check(readPage(t, name)) {
			t.Error(problem)
		}
	}
}

// pageFiles are all pages, relative to the root.
func pageFiles(t *testing.T) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && (slices.Contains(notPages, entry.Name()) || slices.Contains(notPages, name)) {
			return fs.SkipDir
		}
		if filepath.Ext(name) == ".md" && !entry.IsDir() {
			names = append(names, name)
		}
		return nil
	}))
	require.Contains(t, names, filepath.Join("docs", "README.md"))
	return names
}

func readPage(t *testing.T, name string) *page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return parsePage(name, text)
}

// TestCheck gives the checks a mistake each, on the first line that has one.
func TestCheck(t *testing.T) {
	about := readRepository(t)
	cases := map[string]struct {
		text string
		// problem is the one that is found, or nothing.
		problem string
	}{
		"link":              {"[jobs](guides/jobs.md)", ""},
		"no page":           {"[jobs](job.md)", `docs/x.md:1: there is no docs/job.md; correct the link`},
		"outside":           {"[a](../../a.md)", `docs/x.md:1: ../../a.md is outside of the repository; link to what everybody has`},
		"anchor":            {"[a](guides/jobs.md#attempts)", ""},
		"anchor of a key":   {"[a](reference/configuration.md#persianodepools)", ""},
		"no anchor":         {"[a](guides/jobs.md#end)", `docs/x.md:1: docs/guides/jobs.md has no heading with the anchor #end; correct the link`},
		"own anchor":        {"# A `b` & c\n\n[a](#a-b--c)", ""},
		"second anchor":     {"# A\n\n# A\n\n[a](#a-1)", ""},
		"no own anchor":     {"# A\n\n[a](#b)", `docs/x.md:3: docs/x.md has no heading with the anchor #b; correct the link`},
		"elsewhere":         {"[a](https://example.com/a#b)", ""},
		"fence":             {"```\na\n```", `docs/x.md:2: the code block has no language; write it after the fence, text for none`},
		"indented too much": {"a\n\n      b\n", `docs/x.md:3: no line of the code block is at its margin; indent it by four`},
		"no code block":     {"a\n    b\n", `docs/x.md:2: the line is indented like code and is none; put an empty line before it`},
		"target":            {"`make up STACK=prod`", ""},
		"no target":         {"    make everything\n", `docs/x.md:1: the Makefile has no target everything; correct the command`},
		"target inside":     {"    KUBECONFIG=$(make -s kube) kubectl get pods\n", `docs/x.md:1: the Makefile has no target kube; correct the command`},
		"command":           {"`pulumi stack output`", ""},
		"no command":        {"`pulumi deploy`", `docs/x.md:1: pulumi has no command deploy; correct it`},
		"key":               {"`persia:nodePools[].autoscaling.maxNodes`, `persia:nats.tls.routes.key`", ""},
		"field of a key":    {"`cluster.maintenance.exclusions`", ""},
		"Kubernetes' field": {"`persia:nats.resources.limits.cpu`", ""},
		"no key":            {"`persia:pools`", `docs/x.md:1: docs/reference has no persia:pools; correct the key`},
		"no field":          {"`persia:jobs[0].nnWorker.nodes`", `docs/x.md:1: docs/reference has no persia:jobs.nnWorker.nodes; correct the key`},
		"no key to set":     {"    pulumi config set --path 'persia:nats.user[0].name' a\n", `docs/x.md:1: docs/reference has no persia:nats.user; correct the key`},
		"path":              {"`docs/guides/jobs.md`, `config/`, `sandbox/toolchain/*/go.mod`", ""},
		"no path":           {"`docs/job.md`", `docs/x.md:1: there is no docs/job.md; correct the path`},
		"YAML":              {"    persia:nats:\n      size: 3\n      ...\n", ""},
		"no YAML":           {"```yaml\na: b: c\n```", `docs/x.md:2: the block is not valid YAML: yaml: mapping values are not allowed in this context`},
		"no such field":     {"    persia:nats:\n      sise: 3\n", `docs/x.md:1: persia:nats.sise: unknown field; did you mean size?`},
		"whole file":        {"    config:\n      persia:nats:\n        size: three\n", `docs/x.md:1: persia:nats.size: Invalid value: "three": must be an integer, without quotes`},
		"a message":         {"    persia:nodePools[0].taint: unknown field; did you mean taints?\n", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.problem != "" {
				want = []string{c.problem}
			}
			assert.Equal(t, want, about.check(parsePage(filepath.Join("docs", "x.md"), []byte(c.text))))
		})
	}
}

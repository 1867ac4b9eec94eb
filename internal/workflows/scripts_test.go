package workflows

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scripts runs the scripts of the workflows in a folder of their own, with stand-ins
// for the programs that they call.
type scripts struct {
	t   *testing.T
	dir string
}

func newScripts(t *testing.T) scripts {
	s := scripts{t: t, dir: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "bin"), 0o700))
	t.Setenv("PATH", filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("GITHUB_REPOSITORY", "acme/training")
	t.Setenv("GITHUB_STEP_SUMMARY", filepath.Join(s.dir, "summary.md"))
	return s
}

// program puts a stand-in into bin/, which is on the PATH.
func (s scripts) program(name, script string) {
	s.t.Helper()
	s.file("bin/"+name, "#!/usr/bin/env bash\nset -euo pipefail\n"+script)
}

func (s scripts) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

func (s scripts) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(s.t, err)
	}
	return string(text)
}

// run returns the output of a script of .github/scripts, and whether it succeeded.
func (s scripts) run(script string, args ...string) (string, bool) {
	s.t.Helper()
	path, err := filepath.Abs(filepath.Join(repository, ".github", "scripts", script))
	require.NoError(s.t, err)
	command := exec.Command(path, args...)
	command.Dir = s.dir
	output, err := command.CombinedOutput()
	return string(output), err == nil
}

func TestStacks(t *testing.T) {
	s := newScripts(t)
	for _, name := range []string{"Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.prod-eu.yaml"} {
		s.file(name, "")
	}
	output, ok := s.run("stacks.sh")
	assert.True(t, ok, output)
	assert.Equal(t, `["dev","prod-eu"]`+"\n", output)
}

// gh answers a list from the file answer.json, by the caller's own jq expression, and records
// changes.
const gh = `
query='' changes=''
args=("$@")
for i in "${!args[@]}"; do
  case ${args[$i]} in
  --jq) query=${args[$i + 1]} ;;
  PATCH | POST | create | edit | close) changes=1 ;;
  esac
done
if [ -n "$changes" ]; then
  echo "$@" >> changes.txt
else
  jq -r "$query" answer.json
fi
`

func TestComment(t *testing.T) {
	const marker = "<!-- persia-preview: dev -->"
	comment := func(id int, author, body string) string {
		return fmt.Sprintf(`{"id": %d, "user": {"login": %q}, "body": %q}`, id, author, body)
	}
	for name, is := range map[string]struct {
		comments []string
		want     string
	}{
		"the first": {nil, "api --method POST repos/acme/training/issues/7/comments"},
		"in place of the last": {[]string{comment(11, "github-actions[bot]", "hello"), comment(12, "github-actions[bot]", marker+"\nold")},
			"api --method PATCH repos/acme/training/issues/comments/12"},
		"of another stack": {[]string{comment(11, "github-actions[bot]", "<!-- persia-preview: prod -->")},
			"api --method POST"},
		"written by somebody else": {[]string{comment(11, "mallory", marker)}, "api --method POST"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScripts(t)
			s.program("gh", gh)
			s.file("answer.json", "["+strings.Join(is.comments, ",")+"]")
			t.Setenv("PULL_REQUEST", "7")
			output, ok := s.run("comment.sh", s.file("comment.md", marker+"\n## Preview\n"))
			assert.True(t, ok, output)
			assert.Contains(t, s.read("changes.txt"), is.want)
			assert.Equal(t, 1, strings.Count(s.read("changes.txt"), "\n"))
		})
	}
	t.Run("nothing to say", func(t *testing.T) {
		s := newScripts(t)
		output, ok := s.run("comment.sh", s.file("comment.md", ""))
		assert.False(t, ok)
		assert.Contains(t, output, "there is no preview to comment")
	})
}

func TestIssue(t *testing.T) {
	const open = `[{"number": 3, "title": "Drift of stack prod"}, {"number": 4, "title": "Drift of stack dev"}]`
	for name, is := range map[string]struct{ issues, outcome, want string }{
		"no drift":       {"[]", "success", ""},
		"drift":          {"[]", "failure", "issue create --repo acme/training --title Drift of stack dev --body-file body.md\n"},
		"still drift":    {open, "failure", "issue edit 4 --repo acme/training --body-file body.md\n"},
		"no drift again": {open, "success", "issue close 4 --repo acme/training --comment The stack is as main says again.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScripts(t)
			s.program("gh", gh)
			s.file("answer.json", is.issues)
			t.Setenv("STACK", "dev")
			output, ok := s.run("issue.sh", is.outcome, "body.md")
			assert.True(t, ok, output)
			assert.Equal(t, is.want, s.read("changes.txt"))
		})
	}
}

func TestApproved(t *testing.T) {
	s := newScripts(t)
	t.Setenv("STACK", "dev")
	t.Setenv("REFRESH", "false")
	s.program("preview-comment", `
[ "$*" = "--stack dev -- pulumi preview --stack dev --refresh=false --diff --non-interactive --color never" ]
echo '<!-- persia-preview: dev -->'
echo '<!-- persia-changes: 0123456789abcdef -->'
echo '<!-- persia-changes: aaaaaaaaaaaaaaaa -->'`)
	output, ok := s.run("approved.sh", "0123456789abcdef")
	assert.True(t, ok, output)
	assert.Empty(t, s.read("summary.md"))

	for _, other := range []string{"fedcba9876543210", "0123456789abcde", "", "aaaaaaaaaaaaaaaa"} {
		output, ok = s.run("approved.sh", other)
		assert.False(t, ok, other)
		assert.Contains(t, output, "no longer those that were approved")
	}
	assert.Contains(t, s.read("summary.md"), "0123456789abcdef")

	s.program("preview-comment", "exit 255")
	_, ok = s.run("approved.sh", "0123456789abcdef")
	assert.False(t, ok, "a preview that fails")
}

func TestApprovedDestruction(t *testing.T) {
	s := newScripts(t)
	t.Setenv("STACK", "dev")
	s.program("preview-comment", `
[ "$*" = "--stack dev --title Destruction -- pulumi destroy --stack dev --preview-only --diff --non-interactive --color never" ]
echo '<!-- persia-destruction: dev -->'
echo '<!-- persia-changes: 0123456789abcdef -->'`)
	output, ok := s.run("approved.sh", "0123456789abcdef", "destruction.sh")
	assert.True(t, ok, output)
	output, ok = s.run("approved.sh", "fedcba9876543210", "destruction.sh")
	assert.False(t, ok)
	assert.Contains(t, output, "no longer those that were approved")
}

func TestUnprotected(t *testing.T) {
	for name, is := range map[string]struct {
		state string
		ok    bool
	}{
		"free":      {`{"deployment": {"resources": [{"urn": "urn:a"}, {"urn": "urn:b", "protect": false}]}}`, true},
		"empty":     {`{"deployment": {}}`, true},
		"protected": {`{"deployment": {"resources": [{"urn": "urn:a"}, {"urn": "urn:b", "protect": true}]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScripts(t)
			s.program("pulumi", fmt.Sprintf(`[ "$*" = "stack export --stack dev" ]; echo '%s'`, is.state))
			output, ok := s.run("unprotected.sh", "dev")
			assert.Equal(t, is.ok, ok, output)
			if !is.ok {
				assert.Contains(t, output, "urn:b")
				assert.Contains(t, output, "deletionProtection")
			}
		})
	}
	s := newScripts(t)
	s.program("pulumi", "exit 1")
	_, ok := s.run("unprotected.sh", "dev")
	assert.False(t, ok, "nobody knows what is protected")
}

// TestNightlyIssue: an issue about failed tests has the run, each seed once, and what failed.
func TestNightlyIssue(t *testing.T) {
	const passed = "=== RUN   TestChaos\n    DONE TestChaos: `make nightly RUN='^TestChaos$' SEED=7` repeats this run\n--- PASS: TestChaos (9.00s)\n"
	for name, is := range map[string]struct {
		log           string
		want, without []string
	}{
		"a failure": {
			passed + passed + "    chaos_test.go:12: lost a disk\n--- FAIL: TestChaos (3.00s)\n" + strings.Repeat("later\n", 20),
			[]string{"https://example.com/runs/1\n", "```\nmake nightly RUN='^TestChaos$' SEED=7\n```", "chaos_test.go:12: lost a disk\n--- FAIL: TestChaos"},
			[]string{strings.Repeat("later\n", 10), "=== RUN"},
		},
		"a panic":               {"    panic: nil map\ngoroutine 1\n", []string{"none: no test began that has a seed", "panic: nil map\ngoroutine 1"}, nil},
		"it does not compile":   {"# persia/sandbox/e2e\nundefined: x\n", []string{"undefined: x"}, nil},
		"a very long failure":   {"--- FAIL: TestChaos\n" + strings.Repeat("x", 100_000), []string{"--- FAIL: TestChaos"}, []string{strings.Repeat("x", 50_000)}},
		"the tests never began": {"", []string{"The tests did not start."}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScripts(t)
			s.program("gh", gh+`
while [ "$1" != --body-file ]; do shift; done
cp "$2" body.md
`)
			log := filepath.Join(s.dir, "nightly.log")
			if is.log != "" {
				s.file("nightly.log", is.log)
			}
			output, ok := s.run("nightly-issue.sh", log, "https://example.com/runs/1")
			assert.True(t, ok, output)
			assert.Regexp(t, `^issue create --repo acme/training --title Nightly tests of \d{4}-\d\d-\d\d failed --body-file `, s.read("changes.txt"))
			for _, text := range is.want {
				assert.Contains(t, s.read("body.md"), text)
			}
			for _, text := range is.without {
				assert.NotContains(t, s.read("body.md"), text)
			}
		})
	}
}

package workflows

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const repository = "../.."

// workflow is the part of a workflow, or of an action of ours, that the tests check.
type workflow struct {
	Permissions *map[string]string `json:"permissions"`
	Jobs        map[string]job     `json:"jobs"`
	Runs        struct {
		Steps []step `json:"steps"`
	} `json:"runs"`
}

type job struct {
	If             string             `json:"if"`
	Uses           string             `json:"uses"`
	Needs          any                `json:"needs"`
	RunsOn         string             `json:"runs-on"`
	Environment    string             `json:"environment"`
	TimeoutMinutes int                `json:"timeout-minutes"`
	Permissions    *map[string]string `json:"permissions"`
	Steps          []step             `json:"steps"`
}

type step struct {
	Uses string         `json:"uses"`
	Run  string         `json:"run"`
	With map[string]any `json:"with"`
}

// read returns the files of a pattern, by their names, and their texts.
func read(t *testing.T, pattern string) (map[string]workflow, map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repository, ".github", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	workflows, texts := map[string]workflow{}, map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var w workflow
		require.NoError(t, yaml.Unmarshal(text, &w), path)
		name := strings.TrimPrefix(path, filepath.Join(repository, ".github")+"/")
		workflows[name], texts[name] = w, string(text)
	}
	return workflows, texts
}

var (
	usesLine = regexp.MustCompile(`(?m)^ *(?:- )?uses: *(.*)$`)
	pinned   = regexp.MustCompile(`^([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$`)
)

// TestActionsArePinned: a tag can be moved to other code, a commit cannot.
func TestActionsArePinned(t *testing.T) {
	pins := map[string]string{}
	for _, pattern := range []string{"workflows/*", "actions/*/*"} {
		_, texts := read(t, pattern)
		for name, text := range texts {
			for _, line := range usesLine.FindAllStringSubmatch(text, -1) {
				if strings.HasPrefix(line[1], "./") {
					continue
				}
				pin := pinned.FindStringSubmatch(line[1])
				if !assert.NotNil(t, pin, "%s: %s: write the commit, and its version as a comment", name, line[1]) {
					continue
				}
				if other, ok := pins[pin[1]]; ok {
					assert.Equal(t, other, line[1], "%s: one action, one version", name)
				}
				pins[pin[1]] = line[1]
			}
		}
	}
	assert.NotEmpty(t, pins)
}

func TestWorkflowsHaveJustWhatTheyNeed(t *testing.T) {
	workflows, texts := read(t, "workflows/*")
	for name, w := range workflows {
		assert.NotContains(t, texts[name], "pull_request_target", "%s: it runs a fork's code with our rights", name)
		assert.NotContains(t, texts[name], "workflow_run", "%s: as pull_request_target", name)
		assert.NotContains(t, texts[name], "secrets.", "%s: there is no stored secret", name)
		assert.NotContains(t, texts[name], "secrets: inherit", name)
		if assert.NotNil(t, w.Permissions, name) {
			assert.Empty(t, *w.Permissions, "%s: each job has its own", name)
		}
		for id, j := range w.Jobs {
			assert.NotNil(t, j.Permissions, "%s: %s: write its permissions", name, id)
			if j.Uses == "" {
				assert.NotZero(t, j.TimeoutMinutes, "%s: %s: write timeout-minutes", name, id)
			}
			for _, s := range j.Steps {
				assert.NotContains(t, s.Run, "${{", "%s: %s: give it by env: an expression is pasted into the script", name, id)
				if strings.HasPrefix(s.Uses, "actions/checkout@") {
					assert.Equal(t, false, s.With["persist-credentials"], "%s: %s: leaves a token on the disk", name, id)
				}
			}
		}
	}
}

// TestForksGetNoIdentity: of what runs for a pull request, a job with more rights than
// to read comes after one that a fork's pull request does not start.
func TestForksGetNoIdentity(t *testing.T) {
	workflows, texts := read(t, "workflows/*")
	onPullRequest := regexp.MustCompile(`(?m)^  pull_request:`)
	found := 0
	for name, w := range workflows {
		if !onPullRequest.MatchString(texts[name]) {
			continue
		}
		for id, j := range w.Jobs {
			require.NotNil(t, j.Permissions)
			if !slices.ContainsFunc(slices.Collect(maps.Values(*j.Permissions)), func(p string) bool { return p == "write" }) {
				continue
			}
			found++
			first, ok := j.Needs.(string)
			require.True(t, ok, "%s: %s", name, id)
			assert.Contains(t, w.Jobs[first].If, "github.event.pull_request.head.repo.full_name == github.repository &&", "%s: %s", name, id)
		}
	}
	assert.Equal(t, 1, found, "preview")
}

// TestChangesAreApproved checks that every job that acts as the deploying account runs in the
// stack's environment, which asks for approval.
func TestChangesAreApproved(t *testing.T) {
	workflows, _ := read(t, "workflows/*")
	found := 0
	for name, w := range workflows {
		for id, j := range w.Jobs {
			for _, s := range j.Steps {
				if account, _ := s.With["service-account"].(string); strings.Contains(account, "DEPLOY_SERVICE_ACCOUNT") {
					found++
					assert.Equal(t, "${{ inputs.stack }}", j.Environment, "%s: %s", name, id)
				}
			}
		}
	}
	assert.Equal(t, 2, found, "deploy and destroy")
}

// TestWhatChangesIsChecked: a job that changes a stack comes after the check that the
// changes are still the approved ones, and runs on no machine that a preview runs on.
func TestWhatChangesIsChecked(t *testing.T) {
	workflows, texts := read(t, "workflows/*")
	changes := regexp.MustCompile(`pulumi (up|destroy) .*--yes`)
	found := 0
	for name, w := range workflows {
		for id, j := range w.Jobs {
			checked := false
			for _, s := range j.Steps {
				checked = checked || strings.Contains(s.Run, "approved.sh")
				if changes.MatchString(s.Run) {
					found++
					assert.True(t, checked, "%s: %s: %s", name, id, s.Run)
					assert.Contains(t, j.RunsOn, "DEPLOY_RUNNER", "%s: %s", name, id)
				}
			}
		}
		assert.NotContains(t, texts[name], "vars.RUNNER", name)
	}
	assert.Equal(t, 2, found, "deploy and destroy")
}

// TestRunnersAreApart checks that neither an update nor a job without an account finds what a
// preview leaves on a self-hosted machine.
func TestRunnersAreApart(t *testing.T) {
	workflows, _ := read(t, "workflows/*")
	found := map[string]int{}
	for name, w := range workflows {
		for id, j := range w.Jobs {
			if j.Uses != "" {
				continue
			}
			want := "ubuntu-24.04"
			for _, s := range j.Steps {
				account, _ := s.With["service-account"].(string)
				for _, use := range []string{"PREVIEW", "DEPLOY"} {
					if account == "${{ vars."+use+"_SERVICE_ACCOUNT }}" {
						found[use]++
						want = "${{ vars." + use + "_RUNNER || 'ubuntu-24.04' }}"
					}
				}
			}
			assert.Equal(t, want, j.RunsOn, "%s: %s", name, id)
		}
	}
	assert.Equal(t, map[string]int{"PREVIEW": 4, "DEPLOY": 2}, found)
}

// TestPulumiEndsBeforeItIsKilled: a change that takes too long is interrupted while there
// is time to end what has begun and to write the state. Who is killed leaves a lock.
func TestPulumiEndsBeforeItIsKilled(t *testing.T) {
	workflows, _ := read(t, "workflows/*")
	limits := regexp.MustCompile(`^timeout --signal=INT --kill-after=(\d+)m (\d+)m pulumi (up|destroy) `)
	found := 0
	for name, w := range workflows {
		for id, j := range w.Jobs {
			for _, s := range j.Steps {
				if !regexp.MustCompile(`pulumi (up|destroy) .*--yes`).MatchString(s.Run) {
					continue
				}
				found++
				match := limits.FindStringSubmatch(s.Run)
				if !assert.NotNil(t, match, "%s: %s: %s", name, id, s.Run) {
					continue
				}
				grace, limit := number(t, match[1]), number(t, match[2])
				assert.Less(t, grace+limit, j.TimeoutMinutes, "%s: %s", name, id)
				assert.GreaterOrEqual(t, limit, 300, "240 dataloaders are replaced in five hours")
				assert.LessOrEqual(t, j.TimeoutMinutes, 360, "GitHub's own runners end a job then")
			}
		}
	}
	assert.Equal(t, 2, found, "deploy and destroy")
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// TestDrift: every night, the step of the drift workflow compares main with what exists, and fails if they
// differ or the preview fails.
func TestDrift(t *testing.T) {
	workflows, texts := read(t, "workflows/drift.yaml")
	drift := workflows["workflows/drift.yaml"]
	assert.Regexp(t, `(?m)^  schedule:\n    - cron: "\d+ \d+ \* \* \*"$`, texts["workflows/drift.yaml"])
	assert.Contains(t, drift.Jobs["prepare"].If, "github.ref == 'refs/heads/main' &&")
	assert.Equal(t, "prepare", drift.Jobs["drift"].Needs)
	i := slices.IndexFunc(drift.Jobs["drift"].Steps, func(s step) bool { return strings.Contains(s.Run, "preview-comment") })
	require.GreaterOrEqual(t, i, 0)
	for code, ok := range map[string]bool{"0": true, "1": false} {
		s := newScripts(t)
		s.program("preview-comment", `
[ "$*" = "--stack dev --title Drift -- pulumi preview --stack dev --refresh --expect-no-changes --diff --non-interactive --color never" ]
echo the differences
exit `+code)
		t.Setenv("STACK", "dev")
		t.Setenv("RUNNER_TEMP", s.dir)
		command := exec.Command("bash", "-eo", "pipefail", "-c", drift.Jobs["drift"].Steps[i].Run)
		command.Dir = s.dir
		output, err := command.CombinedOutput()
		assert.Equal(t, ok, err == nil, string(output))
		assert.Equal(t, "the differences\n", s.read("comment.md"))
	}
}

// TestFingerprintIsOnTheSecondLine checks that the comment's second line names the approved
// changes. Further down, a text of the stack could look like one.
func TestFingerprintIsOnTheSecondLine(t *testing.T) {
	workflows, _ := read(t, "workflows/*")
	for name, script := range map[string]string{"workflows/deploy-stack.yaml": "preview.sh", "workflows/destroy.yaml": "destruction.sh"} {
		for comment, want := range map[string]string{
			"<!-- persia-preview: dev -->\n<!-- persia-changes: 0123 -->\n<!-- persia-changes: aaaa -->": "changes=0123\n",
			"<!-- persia-preview: dev -->\ntext\n<!-- persia-changes: aaaa -->":                          "",
			"<!-- persia-preview: dev -->\na <!-- persia-changes: aaaa -->":                              "",
		} {
			s := newScripts(t)
			require.NoError(t, os.MkdirAll(filepath.Join(s.dir, ".github", "scripts"), 0o700))
			s.file(filepath.Join(".github", "scripts", script), "#!/usr/bin/env bash\ncat comment.txt\n")
			s.file("comment.txt", comment)
			t.Setenv("GITHUB_OUTPUT", filepath.Join(s.dir, "output"))
			t.Setenv("RUNNER_TEMP", s.dir)
			found := false
			for _, step := range workflows[name].Jobs["preview"].Steps {
				if strings.Contains(step.Run, "GITHUB_OUTPUT") {
					found = true
					command := exec.Command("bash", "-eo", "pipefail", "-c", step.Run)
					command.Dir = s.dir
					output, err := command.CombinedOutput()
					require.NoError(t, err, string(output))
				}
			}
			require.True(t, found, name)
			assert.Equal(t, want, s.read("output"), "%s: %s", name, comment)
		}
	}
}

// TestOnePulumi: the CLI is of the version of the SDK, also in the sandbox.
func TestOnePulumi(t *testing.T) {
	workflows, _ := read(t, "actions/pulumi/*")
	var installed string
	for _, s := range workflows["actions/pulumi/action.yaml"].Runs.Steps {
		if strings.HasPrefix(s.Uses, "pulumi/actions@") {
			installed, _ = s.With["pulumi-version"].(string)
		}
	}
	for _, file := range []string{"go.mod", "sandbox/toolchain/pulumi/go.mod"} {
		text, err := os.ReadFile(filepath.Join(repository, file))
		require.NoError(t, err)
		version := regexp.MustCompile(`github\.com/pulumi/pulumi/sdk/v3 v(\S+)`).FindSubmatch(text)
		require.NotNil(t, version, file)
		assert.Equal(t, string(version[1]), installed, file)
	}
}

// TestDependabotKnowsEveryModule: one that it does not know grows old.
func TestDependabotKnowsEveryModule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, ".github", "dependabot.yml"))
	require.NoError(t, err)
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	var known []string
	for _, update := range config.Updates {
		if update.Ecosystem == "gomod" {
			known = append(known, update.Directories...)
		}
	}
	command := exec.Command("git", "ls-files", "go.mod", "*/go.mod")
	command.Dir = repository
	files, err := command.Output()
	require.NoError(t, err)
	var modules []string
	for file := range strings.Lines(string(files)) {
		modules = append(modules, filepath.Join("/", filepath.Dir(strings.TrimSpace(file))))
	}
	assert.ElementsMatch(t, modules, known)
}

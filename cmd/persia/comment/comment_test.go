package comment

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/stack/effects"
)

var update = flag.Bool("update", false, "write the golden files anew")

func recorded(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	require.NoError(t, err)
	return string(text)
}

// TestComments makes comments of recorded previews.
func TestComments(t *testing.T) {
	for name, is := range map[string]struct {
		title string
		code  int
	}{
		"edit":    {"Preview", 0},
		"same":    {"Preview", 0},
		"refused": {"Preview", 255},
		"failed":  {"Preview", 255},
		"drift":   {"Drift", 7},
	} {
		t.Run(name, func(t *testing.T) {
			got := comment(is.title, "dev", parse(recorded(t, name)), is.code)
			golden := filepath.Join("testdata", name+".md")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got, "go test ./cmd/persia/comment -update writes it anew")
		})
	}
}

func TestParse(t *testing.T) {
	p := parse(recorded(t, "edit"))
	assert.Equal(t, []string{"3 to create", "1 to update", "3 to delete", "1 to replace"}, p.counts)
	assert.True(t, strings.HasPrefix(p.needs, "NODE POOL"), p.needs)
	assert.True(t, strings.HasSuffix(p.needs, "Cost of all nodes: 2.00 an hour"), p.needs)
	require.Len(t, p.warnings, 1)
	assert.Contains(t, p.warnings[0], "persia:jobs[0]")
	assert.Equal(t, []change{
		{"replace", "kubernetes:nats.io/v1alpha2:NatsCluster", "persia-nats-service"},
		{"delete", "kubernetes:core/v1:PersistentVolumeClaim", "checkpoints-vol"},
		{"delete", "kubernetes:core/v1:PersistentVolume", "checkpoints-vol"},
		{"delete", "persia:storage:Volume", "checkpoints-vol"},
	}, p.removed())
	assert.Len(t, p.changes, 8)

	p = parse(recorded(t, "refused"))
	require.Len(t, p.errors, 1)
	assert.Contains(t, p.errors[0], "persia:nats.maxPayload: Invalid value")
	assert.Contains(t, p.errors[0], "did you mean taints?")
	assert.Empty(t, p.changes)

	assert.Equal(t, []change{{"update", "kubernetes:apps/v1:StatefulSet", "adult-income-dataloader"}},
		parse(recorded(t, "drift")).changes, "what a refresh sees is no change to be made")
}

// TestEffectsLead checks that the effects on what runs come first, and are not repeated as a
// warning.
func TestEffectsLead(t *testing.T) {
	require.Equal(t, effects.Title, effectsTitle)
	p := parse("warning: " + effects.Text([]string{"the job a ends", "the pool b goes"}) + "\nwarning: the tag\n" + recorded(t, "edit"))
	assert.Equal(t, "- the job a ends\n- the pool b goes", p.effects)
	assert.Len(t, p.warnings, 2)
	got := comment("Preview", "dev", p, 0)
	first := strings.Index(got, "> [!CAUTION]")
	assert.True(t, strings.HasPrefix(got[first:], "> [!CAUTION]\n> **What this update does to what runs.**\n\n```text\n- the job a ends\n- the pool b goes\n```\n"), got[first:])
}

// TestFingerprint checks that the fingerprint does not depend on the engine's order or its start,
// and that it depends on each change.
func TestFingerprint(t *testing.T) {
	text := recorded(t, "edit")
	assert.Equal(t, "none", parse(recorded(t, "same")).fingerprint())
	want := parse(text).fingerprint()
	start := strings.Index(text, "- kubernetes:core/v1:PersistentVolumeClaim: (delete)")
	end := strings.Index(text, "- kubernetes:core/v1:PersistentVolume: (delete)")
	claim := text[start:end]
	elsewhere := strings.Replace(text, claim, "", 1)
	elsewhere = strings.Replace(elsewhere, "    - persia:storage:Volume: (delete)", claim+"    - persia:storage:Volume: (delete)", 1)
	require.NotEqual(t, text, elsewhere)

	assert.Equal(t, want, parse(elsewhere).fingerprint())
	assert.Equal(t, want, parse("Downloading plugin: 10.00 MiB\n"+text).fingerprint())
	assert.NotEqual(t, want, parse(strings.Replace(text, "replicas: 1 => 2", "replicas: 1 => 3", 1)).fingerprint())
	assert.NotEqual(t, want, parse(strings.Replace(text, "hourlyCost : 2", "hourlyCost : 3", 1)).fingerprint())
}

// TestLongPreview checks that GitHub accepts the comment of a long preview, that its parts are
// closed, and that it says what was cut.
func TestLongPreview(t *testing.T) {
	const lines = 5000
	long := parse(recorded(t, "edit"))
	long.diff = strings.Repeat("  + café: \"日本\"\n", lines)
	long.needs += strings.Repeat("\na long line of some pool ```", lines)
	long.warnings = slices.Repeat([]string{"of every kind"}, lines)
	long.errors = slices.Repeat([]string{strings.Repeat("é", 70_001)}, 2)
	long.changes = slices.Repeat(long.changes, lines)
	got := comment("Preview", "dev", long, 255)

	assert.LessOrEqual(t, len(got), most)
	assert.Greater(t, len(got), most-2*cutRoom, "the room is used")
	assert.True(t, utf8.ValidString(got))
	assert.Equal(t, 6, strings.Count(got, "… cut: "))
	assert.True(t, strings.HasSuffix(got, "\n```\n\n</details>\n"), got[len(got)-100:])
	assert.Equal(t, strings.Count(got, "<details>"), strings.Count(got, "</details>"))
}

// TestDefinitions checks that a new definition does not fill the comment, and that its content counts.
func TestDefinitions(t *testing.T) {
	const header = "    + kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition: (create)\n        [urn=urn:pulumi:dev::persia::kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition::workloads]\n"
	const next = "    + kubernetes:core/v1:Service: (create)\n        spec: {}\n    --outputs:--\n  + of: {}\n"
	preview := func(content string) preview { return parse(header + content + next) }
	got := comment("Preview", "dev", preview("        spec: {\n            group: \"kueue.x-k8s.io\"\n        }\n"), 0)
	assert.Contains(t, got, "[workloads]\n… 3 lines of a definition\n    + kubernetes:core/v1:Service: (create)\n        spec: {}\n    --outputs:--\n  + of: {}\n")
	assert.NotEqual(t, preview("        spec: {}\n").fingerprint(), preview("        spec: {a}\n").fingerprint())
	updated := strings.Replace(header, "+ kubernetes", "~ kubernetes", 1)
	updated = strings.Replace(updated, "(create)", "(update)", 1)
	assert.Contains(t, comment("Preview", "dev", parse(updated+"      ~ spec: {}\n"), 0), "      ~ spec: {}\n")
}

// TestForeignText: a stack file cannot end the block that shows it.
func TestForeignText(t *testing.T) {
	p := preview{warnings: []string{"```\n@everyone\n````"}}
	assert.Contains(t, comment("Preview", "dev", p, 0), "\n`````text\n```\n@everyone\n````\n`````\n")
}

func TestRun(t *testing.T) {
	for name, is := range map[string]struct {
		title   string
		command []string
		code    int
		want    string
	}{
		"succeeds":  {"Preview", []string{"cat", "testdata/same.txt"}, 0, "## Preview of stack dev: no changes\n"},
		"fails":     {"Preview", []string{"sh", "-c", "cat testdata/refused.txt; exit 3"}, 3, "did you mean taints?"},
		"no engine": {"Preview", []string{"sh", "-c", "echo nobody is logged in >&2; exit 1"}, 1, "\nnobody is logged in\n"},
		"killed":    {"Preview", []string{"sh", "-c", "kill -9 $$"}, 1, "exit code 1"},
		"drift":     {"Drift", []string{"true"}, 0, "<!-- persia-drift: dev -->\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, log bytes.Buffer
			code, err := Run("dev", is.title, is.command, &out, &log)
			require.NoError(t, err)
			assert.Equal(t, is.code, code)
			assert.Contains(t, out.String(), is.want)
		})
	}
	t.Run("shows the output as it comes", func(t *testing.T) {
		var out, log bytes.Buffer
		_, err := Run("dev", "Preview", []string{"cat", "testdata/edit.txt"}, &out, &log)
		require.NoError(t, err)
		assert.Equal(t, recorded(t, "edit"), log.String())
	})
	t.Run("no such command", func(t *testing.T) {
		code, err := Run("dev", "Preview", []string{"./no-such-command"}, nil, &bytes.Buffer{})
		assert.Equal(t, 1, code)
		assert.ErrorContains(t, err, "no-such-command")
	})
	t.Run("pulumi by default", func(t *testing.T) {
		bin := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(bin, "pulumi"), []byte("#!/bin/sh\necho \"error: $*\"\nexit 1\n"), 0o700))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		var out bytes.Buffer
		_, err := Run("prod", "Preview", nil, &out, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Contains(t, out.String(), "\npreview --stack prod --diff --non-interactive --color never\n")
	})
}

// TestWrapped: GitHub shows a code block with a bar to scroll if a line is long.
func TestWrapped(t *testing.T) {
	word := strings.Repeat("w", 40)
	long := word + " " + word + " " + word
	assert.Equal(t, "short\n  kept", wrapped("short\n  kept"))
	assert.Equal(t, word+" "+word+"\n  "+word, wrapped(long))
	assert.Equal(t, "  "+word+" "+word+"\n    "+word, wrapped("  "+long))
	assert.Equal(t, strings.Repeat(word, 3), wrapped(strings.Repeat(word, 3)), "a path or an address stays whole")
	assert.Equal(t, strings.Repeat("€", 90)+"\n  "+word, wrapped(strings.Repeat("€", 90)+" "+word))
}

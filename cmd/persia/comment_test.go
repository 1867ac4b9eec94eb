package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fatih/color"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
	"persia/stack/effects"
)

type object = map[string]any

// said is the event of a message, and planned the event of an operation on a resource with inputs before and after.
func said(severity, message string) object {
	return object{"diagnosticEvent": object{"severity": severity, "message": message}}
}

func planned(op, typ, name string, before, after object) object {
	return object{"resourcePreEvent": object{"metadata": object{
		"op": op, "type": typ, "urn": "urn:pulumi:dev::persia::" + typ + "::" + name,
		"old": object{"inputs": before}, "new": object{"inputs": after}, "detailedDiff": object{"status.ready": object{}},
	}}}
}

func outputs(before, after object) object {
	return object{"resOutputsEvent": object{"metadata": object{
		"op": "same", "type": "pulumi:pulumi:Stack", "old": object{"outputs": before}, "new": object{"outputs": after},
	}}}
}

// written returns events as a command prints them.
func written(t *testing.T, events ...object) string {
	t.Helper()
	var text bytes.Buffer
	for _, event := range events {
		require.NoError(t, json.NewEncoder(&text).Encode(event))
	}
	return text.String()
}

// kept is a bucket that the stack forgets, and that stays.
var kept = func() object {
	event := planned("delete", "gcp:storage/bucket:Bucket", "vol", object{"name": "vol"}, nil)
	event["resourcePreEvent"].(object)["metadata"].(object)["old"].(object)["retainOnDelete"] = true
	return event
}()

// costs is the outputs of a stack that costs so much an hour.
func costs(hourly float64) object { return object{"hourlyCost": hourly} }

// edit is a preview with each kind of event.
var edit = []object{
	said("info", "What the stack needs: 1 node; USD 3.50 an hour, 2,555 a month (+1.50 an hour)\n\nNODE POOL  NODES\nsystem     1\n"),
	said("warning", "persia:jobs[0].image: the tag is latest, which may be another image tomorrow; write a version"),
	said("warning", effects.Text([]effects.Effect{{Text: "the job a ends", Ends: []string{"a-nn-worker"}}, {Text: "the pool b goes"}})),
	planned("same", "kubernetes:core/v1:Service", "kept", object{"a": 1}, object{"a": 1}),
	planned("refresh", "kubernetes:core/v1:Pod", "seen", object{"a": 1}, object{"a": 2}),
	planned("create", "kubernetes:core/v1:PersistentVolume", "ckpt", nil, object{"spec": object{"capacity": "10Gi", "modes": []any{"ReadWriteOnce"}}, "id": unknown}),
	planned("update", "kubernetes:apps/v1:StatefulSet", "loader", object{"replicas": 1, "old": true, "__defaults": 1}, object{"replicas": 33554432, "new": "a"}),
	planned("update", "kubernetes:core/v1:ConfigMap", "scripts", object{"launch.py": "a\nb\n"}, object{"launch.py": "a\nc\n"}),
	planned("replace", "kubernetes:nats.io/v1alpha2:NatsCluster", "nats", object{"size": 1}, object{"size": 1}),
	planned("create-replacement", "kubernetes:nats.io/v1alpha2:NatsCluster", "nats", object{"size": 1}, object{"size": 1}),
	kept,
	planned("replace", "kubernetes:batch/v1:Job", "a-completion", object{"metadata": object{"labels": object{"app.kubernetes.io/name": "completion"}}}, nil),
	planned("create", "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition", "workloads", nil, object{"spec": object{"group": "kueue", "names": "w"}}),
	outputs(costs(2), costs(3.5)),
	said("info", "In detail, and unchanged:\n\nPODS OF  COUNT\nsystem   3\n"),
}

func TestMarkdown(t *testing.T) {
	testkit.AssertFile(t, "comment.txt", comment("Preview", "dev", read(written(t, edit...)), 0))
}

// TestTerminal: what a reader should not miss is last, in lines that fit, and in colors where there are some.
func TestTerminal(t *testing.T) {
	p := read(written(t, edit...))
	testkit.AssertFile(t, "terminal.txt", forTerminal(p, false))
	for _, text := range []string{"\n!     replicas: 1 => 33554432\n", "(create)\n", "\nIn detail, and unchanged:\nPODS OF  COUNT\nsystem   3\n"} {
		assert.Contains(t, forTerminal(p, true), text)
	}
	unchanged := read(written(t, said("info", "What the stack needs: 1 node, unchanged; cost unknown: no price of x\n\n")))
	assert.Equal(t, "\nWhat the stack needs: 1 node, unchanged\n\nno changes; cost unknown: no price of x\n", forTerminal(unchanged, false))
	color.NoColor = false
	t.Cleanup(func() { color.NoColor = true })
	assert.Contains(t, forTerminal(p, false), "\x1b[31m- gcp:storage/bucket:Bucket  vol (delete) [retain]\x1b[0m\n")
}

// TestFingerprint: the fingerprint depends on each change, and not on the engine's order.
func TestFingerprint(t *testing.T) {
	want := read(written(t, edit...)).fingerprint()
	reversed := slices.Clone(edit)
	slices.Reverse(reversed)
	assert.Equal(t, want, read(written(t, reversed...)).fingerprint())
	assert.Equal(t, "none", read(written(t, edit[:5]...)).fingerprint())
	for i, changed := range map[int]object{
		5:  planned("create", "kubernetes:core/v1:PersistentVolume", "other", nil, object{}),
		6:  planned("update", "kubernetes:apps/v1:StatefulSet", "loader", object{"replicas": 1}, object{"replicas": 3}),
		7:  planned("update", "kubernetes:core/v1:ConfigMap", "scripts", object{"launch.py": "a\nb\n"}, object{"launch.py": "a\nd\n"}),
		10: planned("same", "gcp:storage/bucket:Bucket", "vol", nil, nil),
		12: planned("create", "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition", "workloads", nil, object{"spec": object{"group": "kueue", "names": "v"}}),
		13: outputs(costs(2), costs(4)),
	} {
		events := slices.Clone(edit)
		events[i] = changed
		assert.NotEqual(t, want, read(written(t, events...)).fingerprint(), "event %d", i)
	}
}

// TestLongPreview: GitHub accepts the comment of a long preview, which closes its parts and says what was cut.
func TestLongPreview(t *testing.T) {
	const lines = 5000
	long := read(written(t, edit...))
	long.needs += strings.Repeat("\na long line of some pool ```", lines)
	long.warnings = slices.Repeat([]string{"of every kind"}, lines)
	long.errors = slices.Repeat([]string{"e" + strings.Repeat("é", 70_001)}, 2)
	long.changes = slices.Repeat(long.changes, lines)
	got := comment("Preview", "dev", long, 255)

	assert.LessOrEqual(t, len(got), most)
	assert.Greater(t, len(got), most-2*cutRoom, "the room is used")
	assert.True(t, utf8.ValidString(got))
	assert.Equal(t, 5, strings.Count(got, "… cut: "))
	assert.True(t, strings.HasSuffix(got, "\n```\n\n</details>\n"), got[len(got)-100:])
	assert.Equal(t, strings.Count(got, "<details>"), strings.Count(got, "</details>"))
}

// TestForeignText: a stack file cannot end the block that shows it.
func TestForeignText(t *testing.T) {
	p := &preview{warnings: []string{"```\n@everyone\n````"}}
	assert.Contains(t, comment("Preview", "dev", p, 0), "\n`````text\n```\n@everyone\n````\n`````\n")
}

func TestPreviewAndComment(t *testing.T) {
	events := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(events, []byte("not an event\n"+written(t, said("error", "did you mean taints?\n"), said("info", "hello\n"))), 0o600))
	for name, is := range map[string]struct {
		command []string
		code    int
		want    string
	}{
		"succeeds":  {[]string{"true"}, 0, "<!-- persia-changes: none -->\n## Drift of stack dev: no changes\n"},
		"fails":     {[]string{"sh", "-c", "cat " + events + "; exit 3"}, 3, "with exit code 3.\n\n```text\ndid you mean taints?\n```\n"},
		"no engine": {[]string{"sh", "-c", "echo error: nobody is logged in >&2; exit 1"}, 1, "\nnobody is logged in\n"},
		"half":      {[]string{"sh", "-c", "printf half; exit 1"}, 1, "\nhalf\n"},
		"killed":    {[]string{"sh", "-c", "kill -9 $$"}, 1, "exit code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, log bytes.Buffer
			assert.Equal(t, ends(is.code, nil), previewAndComment("dev", "Drift", is.command, &out, &log))
			assert.Contains(t, out.String(), is.want)
			assert.Equal(t, name == "fails", strings.Contains(log.String(), "taints?\nhello\n"), "the log has the messages")
		})
	}
	t.Run("on a terminal", func(t *testing.T) {
		refused := said("error", "an unhandled error occurred: 1 error occurred:\n\t* stack configuration: 1 problem\npersia:a: unknown field\n\n")
		require.NoError(t, os.WriteFile(events, []byte(written(t, refused)), 0o600))
		var log bytes.Buffer
		_, err := previewOf("dev", []string{"sh", "-c", "cat " + events + "; exit 3"}, &log)
		assert.Equal(t, &failed{3, errors.New("stack configuration: 1 problem\npersia:a: unknown field")}, err)
		_, err = previewOf("dev", []string{"sh", "-c", "echo error: no stack; exit 1"}, &log)
		assert.EqualError(t, err, "error: no stack")
	})
	t.Run("pulumi by default", func(t *testing.T) {
		bin := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(bin, "pulumi"), []byte("#!/bin/sh\n[ $1 = stack ] && echo prod && exit\n"+
			"echo \"error: $PULUMI_ENABLE_STREAMING_JSON_PREVIEW $*\"\nexit 1\n"), 0o700))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		var out bytes.Buffer
		assert.Equal(t, 1, run(t.Context(), []string{"comment"}, &out, &bytes.Buffer{}))
		assert.Contains(t, out.String(), "\ntrue preview --stack prod --json --non-interactive --color never\n")
	})
}

// TestWrapped: GitHub shows a code block with a bar to scroll if a line is long.
func TestWrapped(t *testing.T) {
	word := strings.Repeat("w", 40)
	long := word + " " + word + " " + word
	assert.Equal(t, "short\n  kept", wrapped("short\n  kept", width))
	assert.Equal(t, word+" "+word+"\n  "+word, wrapped(long, width))
	assert.Equal(t, "  "+word+" "+word+"\n    "+word, wrapped("  "+long, width))
	assert.Equal(t, strings.Repeat(word, 3), wrapped(strings.Repeat(word, 3), width), "a path or an address stays whole")
	assert.Equal(t, strings.Repeat("€", 90)+"\n  "+word, wrapped(strings.Repeat("€", 90)+" "+word, width))
}

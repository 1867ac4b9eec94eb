package answer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/answer"
	"persia/internal/testkit"
)

// TestSentences reads the answers that the coordinator's own tests have written.
func TestSentences(t *testing.T) {
	var answers map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(testkit.Read(t, "../../workload/persia/testdata/answers.json")), &answers))
	var sentences strings.Builder
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		text := answers[name]
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		require.NoError(t, strict.Decode(new(answer.Document)), name)
		assert.Regexp(t, `^{"version": 1, "job": "[^"]*", "run": "\d", "phase": "[a-z ]+", `, string(text), "complete.sh matches this")
		d, err := answer.Read(string(text))
		require.NoError(t, err, name)
		fmt.Fprintf(&sentences, "%s: %s\n", name, d)
	}
	testkit.AssertFile(t, "sentences.txt", sentences.String())
	complete := testkit.Must(answer.Read(string(answers["it is complete"])))(t)
	assert.Equal(t, "/volume/run/attempt-1/a", complete.Checkpoint.Path)
	assert.Equal(t, "useful 72 % of 1.8 h: waiting 3 min, starting 2 min, training again 12 min, saving 13 min; 1 failures, one every 1.7 h "+
		"(hoursBetweenFailures is this times the machines); checkpointSeconds: 780", complete.Account.String())
}

// TestOtherReleases: what another release answers is not taken for this one's.
func TestOtherReleases(t *testing.T) {
	for text, want := range map[string]string{
		"complete in attempt 1\n":               "the coordinator is of an older release of this program: run `pulumi up`, which restarts its pods",
		`{"version": 2, "phase": "done"}`:       "the coordinator answers in version 2, and this program reads 1: use the release of the stack",
		`{"version": 1, "phase": "done", "atte`: "the coordinator's answer cannot be read: unexpected end of JSON input",
	} {
		_, err := answer.Read(text)
		assert.EqualError(t, err, want)
	}
}

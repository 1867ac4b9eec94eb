package sandbox

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/internal/testkit"
)

// TestProgress has lines of the Pulumi CLI.
func TestProgress(t *testing.T) {
	var out strings.Builder
	p := &progress{out: &out, width: 61, most: 3}
	for _, step := range []struct{ line, shows string }{
		{"@ Updating....", ""},
		{" +  pulumi:pulumi:Stack persia-dev creating (0s) ", "0 of 3"},
		{" +  gcp:compute:Network persia-dev creating (0s) ", "0 of 3, waiting for Network persia-dev"},
		{" +  kubernetes:apps/v1:StatefulSet a-nn-worker creating (0s) ", "0 of 3, waiting for Network persia-dev"},
		{" +  kubernetes:apps/v1:StatefulSet a-nn-worker creating (9s) 0 of 1 ready, and more", "0 of 3, waiting for StatefulSet a-nn-worker: 0 of 1 ready, a"},
		{" +  gcp:compute:Network persia-dev created (0.01s) ", "1 of 3, waiting for StatefulSet a-nn-worker: 0 of 1 ready, a"},
		{" +  pulumi:pulumi:Stack persia-dev creating (9s) warning: a", "+  pulumi:pulumi:Stack persia-dev creating (9s) warning: a\n\r\033[K1 of 3, waiting for StatefulSet a-nn-worker: 0 of 1 ready, a"},
		{" +  kubernetes:apps/v1:StatefulSet a-nn-worker **creating failed** error: no", "+  kubernetes:apps/v1:StatefulSet a-nn-worker **creating failed** error: no\n\r\033[K2 of 3"},
		{" -  gcp:compute:Network old deleting (0s) ", "2 of 4, waiting for Network old"},
		{" ~  gcp:compute:Network new updating (0s) [diff: ~name]", "2 of 5, waiting for Network new: [diff: ~name]"},
		{"Resources:", "Resources:\n"},
	} {
		out.Reset()
		testkit.Must(p.Write([]byte(step.line[:3])))(t)
		assert.Empty(t, out.String())
		testkit.Must(p.Write([]byte(step.line[3:] + "\n")))(t)
		if step.shows != "" {
			step.shows = "\r\033[K" + step.shows
		}
		assert.Equal(t, step.shows, out.String(), step.line)
	}
}

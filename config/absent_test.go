package config

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config/input"
)

// TestAbsent checks that no row is about a field that exists, and that each says what to do.
func TestAbsent(t *testing.T) {
	for path, say := range absent() {
		var value any = true
		parts := regexp.MustCompile(`\.|\[]`).Split(path, -1) // of a list, the part after it is empty
		for _, name := range slices.Backward(parts[1:]) {
			if name == "" {
				value = []any{value}
			} else {
				value = map[string]any{name: value}
			}
		}
		text, err := json.Marshal(value)
		require.NoError(t, err)
		p := &input.Problems{Absent: absent()}
		decoded(p, func(key string) (string, bool) { return string(text), key == parts[0] }, nil, nil)
		assert.ErrorContains(t, p.Err(), strings.ReplaceAll(path, "[]", "[0]")+": "+say)
		assert.Regexp(t, "(write|remove|create|open|hold) ", say)
	}
	for path, want := range map[string]string{
		"persia:nodePools[].gpu.partitionSize":                "does not exist, because each process of PERSIA gets a whole GPU; remove it",
		"persia:nodePools[].flexStart":                        "write queuedProvisioning",
		"persia:jobs[].embeddingParameterServer.nodeSelector": "does not exist; write nodePool",
	} {
		assert.Contains(t, absent()[path], want)
	}
}

package e2e

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/require"

	"persia/sandbox"
)

// upChanges brings a stack up, and counts the changes by operation.
// It does not count unchanged resources.
func upChanges(t *testing.T, s *sandbox.Sandbox) map[string]int {
	t.Helper()
	result, err := s.Up(t.Context())
	require.NoError(t, err)
	return changes(t, result.Summary)
}

// refreshChanges refreshes the state, and counts the resources that had drifted by operation.
func refreshChanges(t *testing.T, s *sandbox.Sandbox) map[string]int {
	t.Helper()
	result, err := s.Refresh(t.Context())
	require.NoError(t, err)
	return changes(t, result.Summary)
}

func changes(t *testing.T, summary auto.UpdateSummary) map[string]int {
	t.Helper()
	require.NotNil(t, summary.ResourceChanges)
	changes := map[string]int{}
	for operation, count := range *summary.ResourceChanges {
		if operation != "same" {
			changes[operation] = count
		}
	}
	return changes
}

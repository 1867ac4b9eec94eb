package e2e

import (
	"context"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/require"
)

type upper interface {
	Up(ctx context.Context) (auto.UpResult, error)
}

type refresher interface {
	Refresh(ctx context.Context) (auto.RefreshResult, error)
}

// upChanges brings a stack up, and counts what that changed by operation.
// Unchanged resources are not among it.
func upChanges(t *testing.T, s upper) map[string]int {
	t.Helper()
	result, err := s.Up(t.Context())
	require.NoError(t, err)
	return changes(t, result.Summary)
}

// refreshChanges reads what exists, and counts what had drifted by operation.
func refreshChanges(t *testing.T, s refresher) map[string]int {
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

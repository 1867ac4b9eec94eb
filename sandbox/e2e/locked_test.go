package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/optrefresh"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLocked kills an up while it creates an object, and follows docs/guides/operations.md: the killed up
// leaves a lock and a pending operation, and up works again after `pulumi cancel`.
func TestLocked(t *testing.T) {
	t.Parallel()
	e := newRealEngine(t, repository, "dev", readStackFile(t, filepath.Join(repository, "Pulumi.dev.yaml")))
	backend := filepath.Join(strings.TrimPrefix(e.Workspace().GetEnvVars()["PULUMI_BACKEND_URL"], "file://"), ".pulumi")
	locks := func() []string {
		found, err := filepath.Glob(filepath.Join(backend, "locks", "*", "persia", "dev", "*.json"))
		require.NoError(t, err)
		return found
	}

	const held = "StatefulSet adult-income-nn-worker"
	reached := make(chan struct{})
	var first sync.Once
	e.creating = func(ctx context.Context, resource string) error {
		if resource == held {
			// Until the engine that asks for it is gone.
			first.Do(func() { close(reached); <-ctx.Done() })
		}
		return ctx.Err()
	}
	up := begin(func() error { _, err := e.Stack.Up(t.Context()); return err })
	select {
	case <-reached:
	case <-up.ended:
		require.NoError(t, up.wait())
		t.Fatalf("up did not create the %s", held)
	}
	require.Len(t, locks(), 1)
	text, err := os.ReadFile(locks()[0])
	require.NoError(t, err)
	var lock struct{ PID int }
	require.NoError(t, json.Unmarshal(text, &lock))
	require.NoError(t, syscall.Kill(lock.PID, syscall.SIGKILL))
	require.Error(t, up.wait())
	require.Len(t, locks(), 1, "the killed up leaves its lock")
	assert.Contains(t, pendingOperations(t, filepath.Join(backend, "stacks", "persia", "dev.json")), held)

	const locked = "the stack is currently locked by 1 lock(s)"
	page, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "troubleshooting.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "`"+locked+"`")
	_, err = e.Stack.Up(t.Context())
	require.ErrorContains(t, err, locked)

	require.NoError(t, e.Stack.Cancel(t.Context()))
	assert.Empty(t, locks())
	_, err = e.Stack.Refresh(t.Context(), optrefresh.ClearPendingCreates())
	require.NoError(t, err)
	assert.Positive(t, e.up()["create"], "what the killed up had not created")
	assert.Empty(t, e.up(), "a second up")
	assert.Empty(t, pendingOperations(t, filepath.Join(backend, "stacks", "persia", "dev.json")))
}

// pendingOperations returns the kinds and names of the resources that a state does not know the end of.
func pendingOperations(t *testing.T, state string) []string {
	t.Helper()
	text, err := os.ReadFile(state)
	require.NoError(t, err)
	var stack struct{ Checkpoint apitype.CheckpointV3 }
	require.NoError(t, json.Unmarshal(text, &stack))
	var pending []string
	if stack.Checkpoint.Latest != nil {
		for _, operation := range stack.Checkpoint.Latest.PendingOperations {
			urn := operation.Resource.URN
			pending = append(pending, string(urn.Type().Name())+" "+urn.Name())
		}
	}
	return pending
}

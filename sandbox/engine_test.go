package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
	"persia/sandbox/gcp"
	"persia/sandbox/gcp/google"
	"persia/sandbox/kubeprovider"
)

// nowhere is an address at which no engine listens.
const nowhere = "127.0.0.1:1"

// connections returns the gRPC connections of this process: each has goroutines that call
// back.
func connections() int {
	stacks := make([]byte, 1<<24)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "created by google.golang.org/grpc/internal/grpcsync.NewCallbackSerializer")
}

func requireConnections(t *testing.T, most int) {
	t.Helper()
	require.Eventually(t, func() bool { return connections() <= most }, testkit.Patience, 10*time.Millisecond)
}

func TestAnEngineClosesItsConnections(t *testing.T) {
	before := connections()
	cloud, err := gcp.New(gcpVersion, nil, nil, google.New(t.TempDir(), google.Settings{}), "")
	require.NoError(t, err)
	require.NoError(t, cloud.Attach(nowhere))
	require.Greater(t, connections(), before)

	stopped := false
	require.NoError(t, (&engine{cloud: cloud, stop: func() { stopped = true }}).close())
	assert.True(t, stopped)
	requireConnections(t, before)
}

func TestWithKubernetesClosesTheProvider(t *testing.T) {
	before, kubeconfig := connections(), filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u"}],
		"clusters": [{"name": "c", "cluster": {"server": "https://`+nowhere+`"}}]}`), 0o600))
	require.NoError(t, withKubernetes(t.Context(), kubeconfig, func(provider *kubeprovider.Provider) error {
		defer func() { assert.Greater(t, connections(), before) }()
		return provider.Attach(nowhere)
	}))
	requireConnections(t, before)
}

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/recovery"
	"persia/internal/testkit"
	"persia/sandbox/files"
	"persia/sandbox/gcp"
	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
	"persia/sandbox/provider"
)

// TestRecovery recovers a state with the real Pulumi CLI, whose engine was killed while it created two
// buckets, one of which exists, and replaced a third.
func TestRecovery(t *testing.T) {
	cli := testkit.Must(filepath.Abs(filepath.Join("..", ".sandbox", "bin")))(t)
	if _, err := os.Stat(filepath.Join(cli, "pulumi")); err != nil {
		testkit.Skip(t, err)
	}
	cloud := testkit.Must(gcp.New(gcpVersion, gke.Engine{Cloud: google.New(t.TempDir())}))(t)
	port := testkit.Must(provider.Serve(t.Context(), func() plugin.GrpcProvider { return cloud }))(t)
	dir, state := t.TempDir(), State{t.TempDir(), "dev"}
	for name, value := range map[string]string{
		"PATH": cli + string(os.PathListSeparator) + os.Getenv("PATH"), "PULUMI_HOME": t.TempDir(), "PULUMI_BACKEND_URL": state.url(),
		"PULUMI_CONFIG_PASSPHRASE": "a", "PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_DEBUG_PROVIDERS": fmt.Sprintf("gcp:%d", port),
	} {
		t.Setenv(name, value)
	}
	write(t, filepath.Join(dir, "Pulumi.yaml"), "name: persia\nruntime: go\n")
	t.Chdir(dir)
	pulumi := recovery.CLI("dev")
	require.NoError(t, pulumi(t.Context(), nil, t.Output(), "stack", "init"))
	require.NoError(t, pulumi(t.Context(), nil, t.Output(), "refresh", "--yes"))

	const (
		providerURN = "urn:pulumi:dev::persia::pulumi:providers:gcp::google"
		stackURN    = "urn:pulumi:dev::persia::pulumi:pulumi:Stack::persia-dev"
		bucketURN   = "urn:pulumi:dev::persia::gcp:storage/bucket:Bucket::"
	)
	inputs := func(name string) map[string]any {
		return map[string]any{"name": name, "location": "US-CENTRAL1", "project": "my-project", "__defaults": []any{}}
	}
	creating := func(name string) any {
		return map[string]any{"type": "creating", "resource": map[string]any{
			"urn": bucketURN + name, "custom": true, "type": "gcp:storage/bucket:Bucket", "inputs": inputs(name), "parent": stackURN, "provider": providerURN + "::google-id"}}
	}
	for _, name := range []string{"made", "replaced"} {
		testkit.Must(cloud.Create(t.Context(), plugin.CreateRequest{URN: resource.URN(bucketURN + name), Properties: resource.NewPropertyMapFromMap(inputs(name))}))(t)
	}
	var saved map[string]any
	require.NoError(t, files.ReadJSON(state.File(), &saved))
	latest := saved["checkpoint"].(map[string]any)["latest"].(map[string]any)
	latest["resources"] = []any{
		map[string]any{"urn": stackURN, "type": "pulumi:pulumi:Stack"},
		map[string]any{"urn": providerURN, "custom": true, "id": "google-id", "type": "pulumi:providers:gcp", "inputs": map[string]any{"version": gcpVersion}, "outputs": map[string]any{"version": gcpVersion}, "parent": stackURN},
		map[string]any{"urn": bucketURN + "replaced", "custom": true, "id": "replaced", "type": "gcp:storage/bucket:Bucket", "inputs": inputs("replaced"), "outputs": inputs("replaced"),
			"parent": stackURN, "provider": providerURN + "::google-id", "pendingReplacement": true},
	}
	latest["pending_operations"] = []any{creating("made"), creating("lost"), creating("replaced")}
	write(t, state.File(), string(testkit.Must(json.Marshal(saved))(t)))

	for range 2 { // it may run again
		require.NoError(t, recovery.Run(t.Context(), pulumi, t.Output()))
		var exported strings.Builder
		require.NoError(t, pulumi(t.Context(), nil, &exported, "stack", "export"))
		assert.Contains(t, exported.String(), bucketURN+"made")
		assert.Contains(t, exported.String(), "gs://made", "what Google Cloud says of it")
		assert.NotContains(t, exported.String(), bucketURN+"lost")
		assert.Contains(t, exported.String(), "gs://replaced")
		assert.NotContains(t, exported.String(), "pendingReplacement")
		assert.NotContains(t, exported.String(), "pending_operations")
	}
}

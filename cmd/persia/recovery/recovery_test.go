package recovery

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const exported = `{"version": 3, "deployment": {
	"resources": [{"urn": "urn:pulumi:dev::persia::kubernetes:core/v1:Namespace::known", "custom": true}],
	"pending_operations": [
		{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::persia:gke:Cluster$gcp:container/nodePool:NodePool::persia-gpu", "custom": true,
			"parent": "urn:pulumi:dev::persia::persia:gke:Cluster::persia", "provider": "urn:pulumi:dev::persia::pulumi:providers:gcp::google::123",
			"inputs": {"project": "p", "location": "us-central1", "cluster": "projects/p/locations/us-central1/clusters/persia", "name": "gpu"}}},
		{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::kubernetes:apps/v1:StatefulSet::gone", "custom": true,
			"parent": "urn:pulumi:dev::persia::pulumi:pulumi:Stack::persia-dev", "provider": "urn:pulumi:dev::persia::pulumi:providers:kubernetes::default_4_30_0::1",
			"inputs": {"metadata": {"namespace": "persia", "name": "gone"}}}},
		{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::kubernetes:core/v1:Namespace::known", "custom": true, "inputs": {"metadata": {"name": "known"}}}},
		{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::persia:iam:Keys::keys"}},
		{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::gcp:projects/iAMMember:IAMMember::member", "custom": true}},
		{"type": "deleting", "resource": {"urn": "urn:pulumi:dev::persia::gcp:storage/bucket:Bucket::bucket", "custom": true}}
	]}}`

// TestRun checks what is imported, and that the pending operations are forgotten last.
func TestRun(t *testing.T) {
	const (
		pool = "import gcp:container/nodePool:NodePool persia-gpu projects/p/locations/us-central1/clusters/persia/nodePools/gpu " +
			"--yes --skip-preview --protect=false --generate-code=false --parent parent=urn:pulumi:dev::persia::persia:gke:Cluster::persia --provider provider=urn:pulumi:dev::persia::pulumi:providers:gcp::google"
		set     = "import kubernetes:apps/v1:StatefulSet gone persia/gone --yes --skip-preview --protect=false --generate-code=false"
		refresh = "refresh --yes --skip-preview --clear-pending-creates"
	)
	for name, test := range map[string]struct {
		fails string
		says  string
		want  []string
		err   string
	}{
		"one of two exists": {"resource 'persia/gone' does not exist", "StatefulSet gone: does not exist; the next `pulumi up` creates it", []string{"stack export", pool, set, refresh}, ""},
		"both exist":        {"", "StatefulSet gone: exists, and is in the state now", []string{"stack export", pool, set, refresh}, ""},
		"no answer":         {"connection refused", "NodePool persia-gpu: exists", []string{"stack export", pool, set}, "import kubernetes:apps/v1:StatefulSet gone as persia/gone: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			var said strings.Builder
			err := Run(t.Context(), func(_ context.Context, args ...string) (string, error) {
				ran = append(ran, strings.Join(args, " "))
				if test.fails != "" && ran[len(ran)-1] == set {
					return "", errors.New(test.fails)
				}
				return exported, nil
			}, &said)
			assert.Equal(t, test.want, ran)
			assert.Contains(t, said.String(), test.says)
			if test.err != "" {
				assert.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			for _, text := range []string{"Namespace known: is in the state", "Keys keys: the next `pulumi up` creates it", "IAMMember member: the next `pulumi up` creates it", "Bucket bucket: was deleting", "run `pulumi up`"} {
				assert.Contains(t, said.String(), text)
			}
		})
	}
}

// TestCheckProcesses: a provider without its CLI may still create resources.
func TestCheckProcesses(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	orphan := filepath.Join(t.TempDir(), "pulumi-resource-orphan")
	require.NoError(t, os.Symlink(sleep, orphan))
	command := exec.Command(orphan, "1h")
	require.NoError(t, command.Start())
	defer func() { _ = command.Wait() }()
	defer func() { _ = command.Process.Kill() }()
	assert.ErrorContains(t, CheckProcesses(t.Context()), "pulumi-resource-orphan (process ")
}

package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"io"
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

// TestRun checks what is in the state before the refresh.
func TestRun(t *testing.T) {
	for name, fails := range map[string]string{"all well": "", "no state": "stack export", "no import": "stack import", "no refresh": "refresh --yes --skip-preview"} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			var imported struct {
				Version    int
				Deployment struct {
					Resources []struct{ URN, ID string }
					Pending   []any `json:"pending_operations"`
				}
			}
			var said strings.Builder
			err := Run(t.Context(), func(_ context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
				ran = append(ran, strings.Join(args, " "))
				switch ran[len(ran)-1] {
				case fails:
					return errors.New("no answer")
				case "stack export":
					_, err := io.WriteString(stdout, exported)
					return err
				case "stack import":
					return json.NewDecoder(stdin).Decode(&imported)
				}
				return nil
			}, &said)
			if fails != "" {
				assert.ErrorContains(t, err, "no answer")
				assert.Equal(t, fails, ran[len(ran)-1], "it stops")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []string{"stack export", "stack import", "refresh --yes --skip-preview"}, ran)
			assert.Equal(t, 3, imported.Version)
			assert.Empty(t, imported.Deployment.Pending)
			ids := map[string]string{}
			for _, resource := range imported.Deployment.Resources {
				ids[resource.URN[strings.LastIndex(resource.URN, "::")+2:]] = resource.ID
			}
			assert.Equal(t, map[string]string{"known": "", "persia-gpu": "projects/p/locations/us-central1/clusters/persia/nodePools/gpu", "gone": "persia/gone"}, ids)
			for _, text := range []string{"Namespace known: is in the state", "NodePool persia-gpu: may exist", "Keys keys: the next `pulumi up` creates it",
				"IAMMember member: the next `pulumi up` creates it", "Bucket bucket: was deleting", "run `pulumi up`"} {
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

package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

const exported = `{"version": 3, "deployment": {
	"resources": [
		{"urn": "urn:pulumi:dev::persia::kubernetes:core/v1:Namespace::known", "custom": true},
		{"urn": "urn:pulumi:dev::persia::gcp:container/nodePool:NodePool::spot", "custom": true, "id": "the deleted one", "pendingReplacement": true},
		{"urn": "urn:pulumi:dev::persia::gcp:container/nodePool:NodePool::next", "custom": true, "id": "deleted", "pendingReplacement": true},
		{"urn": "urn:pulumi:dev::persia::kubernetes:core/v1:Namespace::after", "custom": true, "dependencies": ["urn:pulumi:dev::persia::gcp:container/nodePool:NodePool::spot"]}],
	"pending_operations": [
		{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::persia:gke:Cluster$gcp:container/nodePool:NodePool::persia-gpu", "custom": true,
			"parent": "urn:pulumi:dev::persia::persia:gke:Cluster::persia", "provider": "urn:pulumi:dev::persia::pulumi:providers:gcp::google::123",
			"inputs": {"project": "p", "location": "us-central1", "cluster": "projects/p/locations/us-central1/clusters/persia", "name": "gpu"}}},
		{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::kubernetes:apps/v1:StatefulSet::gone", "custom": true,
			"parent": "urn:pulumi:dev::persia::pulumi:pulumi:Stack::persia-dev", "provider": "urn:pulumi:dev::persia::pulumi:providers:kubernetes::default_4_30_0::1",
			"inputs": {"metadata": {"namespace": "persia", "name": "gone"}}}},
		{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::kubernetes:core/v1:Namespace::known", "custom": true, "inputs": {"metadata": {"name": "known"}}}},
		{"type": "creating", "resource": {"urn": "urn:pulumi:dev::persia::gcp:container/nodePool:NodePool::spot", "custom": true,
			"inputs": {"project": "p", "location": "us-central1", "cluster": "persia", "name": "spot"}}},
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
					Resources []struct {
						URN, ID            string
						PendingReplacement bool
					}
					Pending []any `json:"pending_operations"`
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
			names, replaced := []string{}, []string{}
			for _, resource := range imported.Deployment.Resources {
				name := resource.URN[strings.LastIndex(resource.URN, "::")+2:]
				if names = append(names, name); resource.PendingReplacement {
					replaced = append(replaced, name)
				}
				ids[name] = resource.ID
			}
			assert.Equal(t, map[string]string{"known": "", "persia-gpu": "projects/p/locations/us-central1/clusters/persia/nodePools/gpu", "gone": "persia/gone",
				"spot": "projects/p/locations/us-central1/clusters/persia/nodePools/spot", "next": "deleted", "after": ""}, ids)
			assert.Equal(t, []string{"known", "spot", "next", "after", "persia-gpu", "gone"}, names, "a resource stays before those that depend on it")
			assert.Equal(t, []string{"next"}, replaced, "the next up creates it")
			for _, text := range []string{"Namespace known: is in the state", "NodePool persia-gpu: may exist", "Keys keys: the next `pulumi up` creates it",
				"IAMMember member: the next `pulumi up` creates it", "Bucket bucket: was deleting", "run `pulumi up`"} {
				assert.Contains(t, said.String(), text)
			}
		})
	}
}

// TestCheckProcesses: a provider without its CLI may still create resources of the stack that it ran for. Those of
// other projects and people do not matter, and the machine needs no ps.
func TestCheckProcesses(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		testkit.Skip(t, err)
	}
	programs, project, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	for program, is := range map[string]string{"pulumi-resource-a": "sleep", "pulumi-language-go": "sleep", "pulumi": "sh"} {
		require.NoError(t, os.Symlink(testkit.Must(exec.LookPath(is))(t), filepath.Join(programs, program)))
	}
	inside := filepath.Join(project, "a", "folder")
	require.NoError(t, os.MkdirAll(inside, 0o700))
	provider := filepath.Join(programs, "pulumi-resource-a")
	for name, test := range map[string]struct {
		command  []string
		in, from string
		finds    bool
	}{
		"a provider":                 {[]string{provider, "1h"}, project, project, true},
		"a language host":            {[]string{filepath.Join(programs, "pulumi-language-go"), "1h"}, project, project, true},
		"from a folder of a project": {[]string{provider, "1h"}, project, inside, true},
		"of another project":         {[]string{provider, "1h"}, elsewhere, project, false},
		"of a folder with its name":  {[]string{provider, "1h"}, project, project + "2", false},
		"of a CLI that runs":         {[]string{filepath.Join(programs, "pulumi"), "-c", "trap 'kill $!; wait' TERM; " + provider + " 1h & wait"}, project, project, false},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command(test.command[0], test.command[1:]...)
			command.Dir = test.in
			require.NoError(t, command.Start())
			defer func() { _, _ = command.Process.Signal(syscall.SIGTERM), command.Wait() }()
			require.Eventually(t, func() bool {
				all, err := processes(t.Context())
				return err == nil && slices.ContainsFunc(slices.Collect(maps.Values(all)), func(p process) bool { return p.folder == test.in && p.program != "pulumi" })
			}, time.Minute, time.Millisecond)
			require.NoError(t, os.MkdirAll(test.from, 0o700))
			t.Chdir(test.from)
			t.Setenv("PATH", "")
			err := CheckProcesses(t.Context())
			if test.finds {
				id := command.Process.Pid
				require.ErrorContains(t, err, fmt.Sprintf("%s (process %d); wait until they end, or run `kill %d`", filepath.Base(test.command[0]), id, id))
			} else {
				require.NoError(t, err)
			}
		})
	}
}

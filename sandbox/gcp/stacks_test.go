package gcp

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"persia/config/input"
	"persia/gcp"
	"persia/internal/testkit"
	"persia/sandbox/gcp/gke"
	"persia/sandbox/gcp/google"
)

// stackFiles returns the stack files of the project and the examples, and some with settings that these lack.
func stackFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, folder := range []string{"../..", "../../examples", "testdata"} {
		found := testkit.Must(filepath.Glob(filepath.Join(folder, "Pulumi.*.yaml")))(t)
		require.NotEmpty(t, found, folder)
		paths = append(paths, found...)
	}
	return paths
}

// stackFile returns the values of a stack file, with each encrypted text as it is written.
func stackFile(t *testing.T, path string) values {
	t.Helper()
	file := testkit.Must(input.ReadStackFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), "persia"))(t)
	return values(file.Config.Open(func(_ []any, ciphertext string) string { return ciphertext }))
}

func configuration(t testing.TB, file values) map[string]string {
	t.Helper()
	all := map[string]string{}
	for key, value := range file {
		text, isText := value.(string)
		if !isText {
			text = string(testkit.Must(json.Marshal(value))(t))
		}
		all[key] = text
	}
	return all
}

// TestStacks brings every stack file up: a second up finds nothing to do, before and after a refresh, and destroy leaves only the resources that outlive a stack.
func TestStacks(t *testing.T) {
	for _, path := range stackFiles(t) {
		t.Run(strings.Split(filepath.Base(path), ".")[1], func(t *testing.T) {
			e, file := newStack(t, filepath.Dir(path)), stackFile(t, path)
			e.up(file)
			assertSettled(t, e, file)

			if cluster, made := file["persia:cluster"].(values); made && cluster["existing"] == nil {
				set("persia:cluster", "deletionProtection", false)(file)
				e.up(file)
			}
			e.destroy()
			assert.Empty(t, e.nodes())
			for _, kind := range []string{"container.cluster", "container.nodePool", "compute.subnetwork", "compute.router", "iam.serviceAccount"} {
				assert.Empty(t, testkit.Must(e.cloud.List(kind))(t), kind)
			}
		})
	}
}

// assertSettled holds that a stack is as its file says, before and after a refresh.
func assertSettled(t *testing.T, e *engine, file values) {
	t.Helper()
	assert.Empty(t, e.up(file), "a second up")
	assert.Empty(t, e.effects(), "effects of a second up")
	assert.Empty(t, e.refresh(), "drift")
	assert.Empty(t, e.up(file), "an up after a refresh")
	assert.Empty(t, e.effects(), "effects of an up after a refresh")
}

// TestDestroyLeavesTheOtherStacksGrant checks that, of two stacks of a project whose jobs mount the
// same bucket, destroy of one removes only its own access.
func TestDestroyLeavesTheOtherStacksGrant(t *testing.T) {
	one := newStack(t, "../..")
	two := one.another("two")
	grants := func() []string {
		all := testkit.Must(one.cloud.List("iam.member"))(t)
		return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(id string) bool { return !strings.HasPrefix(id, "b/my-project-checkpoints/") })
	}
	ofOne, ofTwo := editable(t), editable(t)
	set("persia:cluster", "name", "persia-two")(ofTwo)
	ofTwo["persia:storage"] = []any{values{"name": "checkpoints", "size": "1Ti", "gcsFuse": values{"bucket": "my-project-checkpoints"}}}
	one.up(ofOne)
	granted := grants()
	require.Len(t, granted, 1)
	two.up(ofTwo)
	require.Len(t, grants(), 2)

	two.destroy()
	assert.Equal(t, granted, grants(), "the grant of the stack that stays")
	assertSettled(t, one, ofOne)
}

// TestResume: a command completes what a killed one of its control plane began. The agent leaves the pool alone till then.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		nodes  int
	}{"a pool that changes": {changing, 2}, "a pool that is deleted": {stopping, 0}} {
		t.Run(name, func(t *testing.T) {
			e := newStack(t, "../..")
			e.up(poolStackOf(t))
			pool := string(e.state[urnOf(nodePoolType, "persia-workers")].id)
			require.NoError(t, e.cloud.SetStatus(google.NodePool, pool, c.status))
			for name, node := range e.nodes() {
				if node.Labels[gcp.LabelNodePool] == "workers" {
					require.NoError(t, e.client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
					break
				}
			}
			isAgents := func() bool {
				pools := testkit.Must(e.api.gke.Pools())(t)
				return slices.ContainsFunc(pools, func(pool gke.Pool) bool { return pool.Name() == "workers" })
			}
			assert.False(t, isAgents())
			own := e.api.gke.Config
			e.api.gke.Config = &rest.Config{Host: "https://127.0.0.1:6444"}
			require.NoError(t, e.Resume(t.Context()))
			assert.Equal(t, 1, e.nodesOf("workers"), "a pool of another control plane")
			e.api.gke.Config = own
			require.NoError(t, e.Resume(t.Context()))
			assert.Equal(t, c.nodes, e.nodesOf("workers"))
			assert.Equal(t, c.nodes > 0, isAgents())
			assert.Equal(t, c.nodes > 0, testkit.Must(e.cloud.Get(google.NodePool, pool))(t) != nil)
		})
	}
}

// TestNetworkOfAFailedUp checks that destroy keeps the network of a Filestore instance, even if the
// stack never created the instance. The next life takes it over.
func TestNetworkOfAFailedUp(t *testing.T) {
	e, file := newStack(t, "../.."), editable(t)
	e.refused = instanceType
	require.ErrorContains(t, e.tryUp(file), "Quota limit reached")
	e.destroy()

	e = e.another("dev")
	e.up(file)
	for _, step := range []string{"import Network", "create Instance"} {
		assert.Contains(t, e.summary(), step)
	}
	e.up(file) // gives what was imported its labels, as Pulumi does in the same update
	assertSettled(t, e, file)
}

// TestBucketOfAFailedUp: an update that marks a bucket for deletion, and then fails, changes the state
// and not the outputs. No later update deletes the bucket, or says that its data stays.
func TestBucketOfAFailedUp(t *testing.T) {
	e, file := newStack(t, "../.."), poolStackOf(t)
	storage := func(volumes ...any) { file["persia:storage"] = volumes }
	volume := func(name string, create values) any {
		return values{"name": name, "size": "1Ti", "gcsFuse": values{"bucket": name, "create": create}}
	}
	storage(volume("my-checkpoints", values{}))
	e.up(file)

	storage(volume("my-checkpoints", values{"deleteWithStack": "my-checkpoints"}))
	e.refused = "kubernetes:core/v1:PersistentVolume" // comes after the bucket
	require.Error(t, e.tryUp(file))
	e.refused = ""

	storage()
	require.ErrorContains(t, e.tryUp(file), "for deletion (deleteWithStack), and no volume creates it any more")
	assert.NotContains(t, strings.Join(e.warned, "\n"), "stays in gs://my-checkpoints")

	storage(volume("my-checkpoints", values{}))
	e.up(file)
	storage()
	e.up(file)
	assert.Contains(t, strings.Join(e.effects(), "\n"), "its data stays in gs://my-checkpoints")
	assert.Contains(t, testkit.Must(e.cloud.List("storage.bucket"))(t), "my-checkpoints")
}

// TestCopiedStackFile: the first preview warns of storage that exists: the stack of the copied file may train in it.
func TestCopiedStackFile(t *testing.T) {
	e, file := newStack(t, "../.."), editable(t)
	file["persia:storage"] = []any{values{"name": "checkpoints", "size": "1Ti", "nfs": values{"server": "10.0.0.2", "path": "/checkpoints"}}}
	e.up(file)
	assert.Contains(t, strings.Join(e.warned, "\n"), "persia:storage[0]: nfs://10.0.0.2/checkpoints exists, and this stack has not used it before")
}

// TestSecretsOfAFailedUp: a first up that fails after the cluster is there, and a refresh, leave GKE's own word for the
// encryption in the state, which the provider refuses as an input.
func TestSecretsOfAFailedUp(t *testing.T) {
	e, file := newStack(t, "../.."), poolStackOf(t)
	set("persia:cluster", "encryption", values{"secrets": keyRing + "secrets"})(file)
	e.refused = nodePoolType
	require.ErrorContains(t, e.tryUp(file), "Quota limit reached")
	e.refused = ""
	e.refresh()
	e.up(file)
	assert.NotContains(t, e.summary(), "update")
	assertSettled(t, e, file)
}

// TestIdentity: two stacks of one name in two backends are two stacks, unless they have the same cluster, which Google
// refuses. A stack stays the same by another name, and after destroy.
func TestIdentity(t *testing.T) {
	e, file := newStack(t, "../.."), poolStackOf(t)
	file["persia:storage"] = []any{values{"name": "checkpoints", "size": "1Ti", "gcsFuse": values{"bucket": "my-checkpoints", "create": values{}}}}
	const imports = "persia:storage[0]: gs://my-checkpoints exists with the label persia-stack=persia-dev-"
	e.up(file)
	assert.NotContains(t, strings.Join(e.warned, "\n"), imports)
	e.name = "renamed"
	assertSettled(t, e, file)
	delete(e.objects, urnOf("pulumi:index:Stash", "identity")) // as an earlier release left it
	e.up(file)
	assert.Equal(t, "create Stash", e.summary())

	second := e.another("dev")
	require.ErrorContains(t, second.tryUp(file), "already exists")
	assert.Contains(t, strings.Join(second.warned, "\n"), imports)
	elsewhere := maps.Clone(file)
	elsewhere["persia:cluster"] = maps.Clone(file["persia:cluster"].(values))
	set("persia:cluster", "name", "another")(elsewhere)
	require.ErrorContains(t, e.another("dev").tryUp(elsewhere), "exists already, and the stack persia-dev-")

	set("persia:cluster", "deletionProtection", false)(file)
	e.up(file)
	e.destroy()
	again := e.another("dev")
	again.up(file)
	assert.Contains(t, again.summary(), "import Bucket")
	assert.Contains(t, strings.Join(again.warned, "\n"), imports)
}

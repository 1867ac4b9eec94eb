package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestWholeStacks has Pulumi's engine take stack files through their life: up, a preview, a
// refresh and a second up that change nothing, and destroy. The short form does so with
// three files: TestStacks in sandbox/gcp has all, without the engine.
func TestWholeStacks(t *testing.T) {
	t.Parallel()
	paths := []string{"Pulumi.dev.yaml", "Pulumi.prod.yaml", "examples/Pulumi.existing.yaml"}
	if *long {
		paths = stackFiles(t)
	}
	for _, path := range paths {
		path = filepath.Join(repository, path)
		name := strings.Split(filepath.Base(path), ".")[1]
		t.Run(name, func(t *testing.T) {
			file := readStackFile(t, path)
			e := newRealEngine(t, filepath.Dir(path), name, file)
			created := e.up()["create"]
			assert.Positive(t, created)
			e.cloud.Requests()
			written := e.written
			assert.Empty(t, e.preview(), "a preview")
			assert.Empty(t, e.refresh(), "drift")
			assert.Empty(t, e.up(), "a second up")
			assert.Empty(t, e.cloud.Requests(), "requests that change something")
			assert.Equal(t, written, e.written, "writes to the cluster")

			if cluster, made := file["persia:cluster"].(object); made && cluster["existing"] == nil && cluster["deletionProtection"] != false {
				cluster["deletionProtection"] = false
				e.configure(file)
				e.up()
			}
			deleted, err := e.destroy()
			require.NoError(t, err)
			assert.Equal(t, map[string]int{"delete": created}, deleted)
			nodes, err := e.nodes.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			assert.Empty(t, nodes.Items)
			for _, kind := range []string{"container.cluster", "container.nodePool", "compute.subnetwork", "compute.router", "iam.serviceAccount"} {
				left, err := e.cloud.List(kind)
				require.NoError(t, err)
				assert.Empty(t, left, kind)
			}
		})
	}
}

// stackFiles returns the paths of all stack files, from the repository's folder.
func stackFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"Pulumi.*.yaml", "examples/Pulumi.*.yaml"} {
		found, err := fs.Glob(os.DirFS(repository), pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		paths = append(paths, found...)
	}
	return paths
}

// TestEngine has Pulumi's engine take one stack through what happens to it in years.
func TestEngine(t *testing.T) {
	t.Parallel()
	file := readStackFile(t, filepath.Join(repository, "Pulumi.dev.yaml"))
	e := newRealEngine(t, repository, "dev", file)
	e.up()
	for _, event := range []struct {
		name string
		test func(e realEngine, file object)
	}{
		{"the state is lost", lostState},
		{"a refresh sees the cluster", refreshSeesTheCluster},
		{"a destroy ends between a claim and its volume", volumeWithoutItsClaim},
		{"a pool is renamed", renamedPool},
		{"a protected stack is destroyed", protectedDestroy},
	} {
		if !t.Run(event.name, func(t *testing.T) {
			e := e
			e.T = t
			event.test(e, file)
		}) {
			return // the stack is not in the state that the next event begins with
		}
	}
	_, err := e.destroy()
	require.NoError(t, err)
}

// lostState follows docs/guides/operations.md for a lost state.
func lostState(e realEngine, _ object) {
	e.cloud.Requests()
	written := e.written
	kept := filepath.Join(strings.TrimPrefix(e.Workspace().GetEnvVars()["PULUMI_BACKEND_URL"], "file://"), ".pulumi")
	state := filepath.Join(kept, "stacks", "persia", "dev.json")
	require.NoError(e, os.Remove(state))
	backups, err := filepath.Glob(filepath.Join(kept, "backups", "persia", "dev", "dev.*.json"))
	require.NoError(e, err)
	require.NotEmpty(e, backups)
	newest, err := os.ReadFile(slices.Max(backups))
	require.NoError(e, err)
	require.NoError(e, os.WriteFile(state, newest, 0o600))

	e.refresh()
	assert.Empty(e, e.up(), "an up")
	assert.Empty(e, e.cloud.Requests(), "requests that change something")
	assert.Equal(e, written, e.written, "writes to the cluster")
}

// refreshSeesTheCluster: a refresh reads the cluster's objects, and not the state.
func refreshSeesTheCluster(e realEngine, _ object) {
	assert.Empty(e, e.refresh(), "drift")
	e.change(e.T, "StatefulSet", "adult-income-nn-worker", func(set resource.PropertyMap) {
		spec := set["spec"].ObjectValue().Copy()
		spec["replicas"] = resource.NewProperty(9.0)
		set["spec"] = resource.NewProperty(spec)
	})
	assert.Equal(e, map[string]int{"update": 1}, e.refresh(), "somebody has scaled it")
	e.change(e.T, "StatefulSet", "adult-income-nn-worker", nil)
	assert.Equal(e, map[string]int{"delete": 1}, e.refresh(), "somebody has deleted it")
	assert.Equal(e, 1, e.up()["create"])
}

// volumeWithoutItsClaim interrupts a destroy between a claim and its volume. The volume is
// Released and would never bind again: the next up replaces it, once.
func volumeWithoutItsClaim(e realEngine, _ object) {
	e.stuck["PersistentVolume checkpoints-vol"] = true
	deleted, err := e.destroy()
	require.Error(e, err)
	assert.Positive(e, deleted["delete"])
	delete(e.stuck, "PersistentVolume checkpoints-vol")

	did := e.up()
	assert.Equal(e, 1, did["replace"], "%v", did)
	assert.Positive(e, did["create"], "the claim and the job")
	assert.Empty(e, e.up(), "a second up")
}

// renamedPool: the new pool is there before the old one goes.
func renamedPool(e realEngine, file object) {
	e.cloud.Requests()
	file["persia:nodePools"].([]any)[0].(object)["name"] = "renamed"
	job := file["persia:jobs"].([]any)[0].(object)
	for _, role := range job {
		if role, ok := role.(object); ok && role["nodePool"] != nil {
			role["nodePool"] = "renamed"
		}
	}
	e.configure(file)
	e.up()
	var pools []string
	for _, request := range e.cloud.Requests() {
		if request.Kind == "container.nodePool" {
			pools = append(pools, request.Method+" "+filepath.Base(request.Name))
		}
	}
	assert.Equal(e, []string{"POST renamed", "DELETE gpu"}, pools)
}

// protectedDestroy: `pulumi destroy` deletes nothing while the cluster is protected. The Automation API
// would leave out the preview that finds that.
func protectedDestroy(e realEngine, file object) {
	protect := func(protected bool) {
		file["persia:cluster"].(object)["deletionProtection"] = protected
		e.configure(file)
		e.up()
	}
	protect(true)
	e.cloud.Requests()
	written := e.written
	workspace := e.Workspace()
	environment := []string{"PULUMI_HOME=" + workspace.PulumiHome()}
	for name, value := range workspace.GetEnvVars() {
		environment = append(environment, name+"="+value)
	}
	output, _, _, err := workspace.PulumiCommand().Run(e.Context(), workspace.WorkDir(), nil, nil, nil, environment,
		"destroy", "--yes", "--non-interactive", "--stack", e.Name())
	require.Error(e, err)
	assert.Contains(e, strings.Join(strings.Fields(output), " "), "cannot be deleted because it is protected")
	assert.Empty(e, e.cloud.Requests(), "requests that change something")
	assert.Equal(e, written, e.written, "writes to the cluster")
	protect(false)
}

// readStackFile returns a stack's configuration as it is written.
func readStackFile(t *testing.T, path string) object {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct {
		Config object `json:"config"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	return file.Config
}

package gcp

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/config/input"
)

// stackFiles returns the stack files of the project and the examples, and some with settings
// that these lack.
func stackFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, folder := range []string{"../..", "../../examples", "testdata"} {
		found, err := filepath.Glob(filepath.Join(folder, "Pulumi.*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, found, folder)
		paths = append(paths, found...)
	}
	return paths
}

// stackFile returns the values of a stack file, with each encrypted text as it is written.
func stackFile(t *testing.T, path string) values {
	t.Helper()
	file, err := input.ReadStackFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), "persia")
	require.NoError(t, err)
	return values(file.Config.Open(func(_ []any, ciphertext string) string { return ciphertext }))
}

func configuration(t *testing.T, file values) map[string]string {
	t.Helper()
	all := map[string]string{}
	for key, value := range file {
		text, isText := value.(string)
		if !isText {
			encoded, err := json.Marshal(value)
			require.NoError(t, err)
			text = string(encoded)
		}
		all[key] = text
	}
	return all
}

func newStack(t *testing.T, folder string) *engine {
	t.Helper()
	absolute, err := filepath.Abs(folder)
	require.NoError(t, err)
	return &engine{simulated: newGoogle(t), folder: absolute, state: map[resource.URN]known{}, objects: map[resource.URN]inCluster{}}
}

// TestStacks brings every stack file up: a second up finds nothing to do and sends nothing, before
// and after a refresh, and destroy leaves only the resources that outlive a stack.
func TestStacks(t *testing.T) {
	for _, path := range stackFiles(t) {
		t.Run(strings.Split(filepath.Base(path), ".")[1], func(t *testing.T) {
			e, file := newStack(t, filepath.Dir(path)), stackFile(t, path)
			e.up(configuration(t, file))
			e.cloud.Requests()
			assert.Empty(t, e.up(configuration(t, file)), "a second up")
			assert.Empty(t, e.effects(), "effects of a second up")
			assert.Empty(t, e.refresh(), "drift")
			assert.Empty(t, e.up(configuration(t, file)), "an up after a refresh")
			assert.Empty(t, e.effects(), "effects of an up after a refresh")
			assert.Empty(t, e.cloud.Requests(), "requests that change something")

			if cluster, made := file["persia:cluster"].(values); made && cluster["existing"] == nil {
				updateCluster(t, e, file)
			}
			e.destroy()
			assert.Empty(t, e.names(), "nodes")
			for _, kind := range []string{"container.cluster", "container.nodePool", "compute.subnetwork", "compute.router", "iam.serviceAccount"} {
				left, err := e.cloud.List(kind)
				require.NoError(t, err)
				assert.Empty(t, left, kind)
			}
		})
	}
}

// updateCluster makes each edit of a cluster that is documented to update it and nothing
// else, one after another.
func updateCluster(t *testing.T, e *engine, file values) {
	t.Helper()
	edits, made := clusterEdits(), 0
	// A protected cluster could not be destroyed, and must have more than one node.
	edits["deletionProtection"] = documentedEdit{nil, set("persia:cluster", "deletionProtection", false)}
	for _, row := range tableOf(t, "## Change the cluster") {
		if row.effect != "`update` of the Cluster" {
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(edits)) {
			concerned := slices.ContainsFunc(quoted(row.edits), func(name string) bool {
				return path == name || strings.HasPrefix(path, name+".")
			})
			before := file["persia:cluster"]
			if edits[path].before != nil || !concerned {
				continue
			}
			edits[path].edit(file)
			if reflect.DeepEqual(before, file["persia:cluster"]) {
				continue // the stack file had it so
			}
			made++
			e.up(configuration(t, file))
			if assert.Len(t, e.steps, 1, "%s: %v", path, e.steps) {
				assert.Equal(t, "update Cluster", e.steps[0].operation+" "+e.steps[0].kind, path)
			}
		}
	}
	assert.Empty(t, e.up(configuration(t, file)), "an up after the updates")
	t.Logf("%d documented updates of the cluster", made)
}

// TestKubeDNSAfterCloudDNS: a cluster that had Cloud DNS reports its DNS without a scope, which
// the provider has a default for. Every up then asks for kube-dns again, and nothing is stuck.
func TestKubeDNSAfterCloudDNS(t *testing.T) {
	e, file := newStack(t, "../.."), stackFile(t, "../../Pulumi.dev.yaml")
	e.up(configuration(t, file))
	set("persia:cluster", "dns", "KUBE_DNS")(file)
	e.up(configuration(t, file))
	e.refresh()
	for range 2 {
		e.up(configuration(t, file))
		if assert.Len(t, e.steps, 1) {
			assert.Equal(t, step{"update", "Cluster", "persia-dev", []string{"dnsConfig.clusterDnsScope"}}, e.steps[0])
		}
	}
}

// TestEditsOfAPoolAreCarriedOut makes each edit that is documented as an update: no
// other resource changes, GKE does not refuse it, and a second up has nothing to do.
func TestEditsOfAPoolAreCarriedOut(t *testing.T) {
	edits := poolEdits()
	edits["the last label"] = edit{values{"labels": values{"team": "ads"}}, values{"labels": values{}}}
	edits["the last taint"] = edit{values{"taints": []any{values{"key": "a", "value": "b", "effect": "NoSchedule"}}}, values{"taints": []any{}}}
	updated := []string{"the last label", "the last taint"}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Pool]()) {
		if field.Tag.Get("change") == "update" {
			updated = append(updated, field.Name)
		}
	}
	for _, name := range updated {
		t.Run(name, func(t *testing.T) {
			e, c := newStack(t, "../.."), edits[name]
			e.up(configuration(t, poolStackOf(t, c.before)))
			edited := configuration(t, poolStackOf(t, c.before, c.after))
			assertOnly(t, "update "+nodePoolType, e.up(edited))
			assert.Empty(t, e.up(edited), "a second up")
		})
	}
}

// TestEditsOfACluster makes edits of a cluster and compares them with the documentation: most are
// updates, and settings that cannot change replace the cluster.
func TestEditsOfACluster(t *testing.T) {
	const key = "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k"
	update, replace := "update "+clusterType, "replace "+clusterType
	for _, c := range []struct {
		name          string
		before, after values
		want          string
	}{
		{"release channel", nil, values{"releaseChannel": "STABLE"}, update},
		{"protection", values{"deletionProtection": true}, values{"deletionProtection": false}, update},
		{"maintenance", nil, values{"maintenance": values{"startTime": "05:00"}}, update},
		{"an exclusion", nil, values{"maintenance": values{"exclusions": []any{values{"name": "run", "start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z"}}}}, update},
		{"no exclusion", values{"maintenance": values{"exclusions": []any{values{"name": "run", "start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z"}}}}, values{"maintenance": values{}}, update},
		{"authorized networks", nil, values{"authorizedNetworks": []any{values{"name": "office", "cidr": "203.0.113.0/24"}}}, update},
		{"no authorized network", values{"authorizedNetworks": []any{values{"name": "office", "cidr": "203.0.113.0/24"}}}, values{"authorizedNetworks": []any{}}, update},
		{"shielded nodes", nil, values{"shieldedNodes": false}, update},
		{"binary authorization", nil, values{"binaryAuthorization": false}, update},
		{"security posture", nil, values{"securityPosture": "DISABLED"}, update},
		{"autoscaling profile", nil, values{"autoscalingProfile": "BALANCED"}, update},
		{"the disk driver", nil, values{"csiDrivers": values{"persistentDisk": false}}, update},
		{"storage drivers", nil, values{"csiDrivers": values{"filestore": false}}, update},
		{"monitoring", nil, values{"monitoring": values{"components": []any{"DCGM", "SYSTEM_COMPONENTS"}}}, update},
		{"cost management", nil, values{"costManagement": false}, update},
		{"datapath", nil, values{"dataplaneV2": false}, replace},
		{"private nodes", nil, values{"privateNodes": false}, replace},
		{"a new key of Secrets", nil, values{"encryption": values{"secrets": key}}, update},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newStack(t, "../..")
			clusterOf := func(settings ...values) map[string]string {
				file := poolStackOf(t)
				cluster := file["persia:cluster"].(values)
				cluster["deletionProtection"] = false
				for _, s := range settings {
					maps.Copy(cluster, s)
				}
				return configuration(t, file)
			}
			e.up(clusterOf(c.before))
			assert.Empty(t, e.up(clusterOf(c.before)), "a second up")
			edited := clusterOf(c.before, c.after)
			did := e.up(edited)
			assert.True(t, slices.ContainsFunc(did, func(step string) bool { return strings.HasPrefix(step, c.want) }), "%s among %v", c.want, did)
			if c.want == update {
				assert.False(t, slices.ContainsFunc(did, func(step string) bool { return strings.HasPrefix(step, "replace") }), "%v", did)
				assert.Empty(t, e.up(edited), "a second up after the edit")
			}
		})
	}
}

// assertOnly checks that there is exactly one step, with an operation and a type.
func assertOnly(t *testing.T, want string, did []string) {
	t.Helper()
	if assert.Len(t, did, 1, "%v", did) {
		assert.True(t, strings.HasPrefix(did[0], want+" "), "%v", did)
	}
}

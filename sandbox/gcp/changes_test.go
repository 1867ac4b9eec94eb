package gcp

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/stack"
)

// poolStack is a stack with one node pool, which nothing is assigned to.
const poolStack = `
persia:project: my-project
persia:cluster: {name: persia, region: us-central1, zones: [us-central1-a], deletionProtection: false}
persia:nodePools: []
persia:machineTypes: {}
persia:nvidiaDriver: {installer: managed}
persia:storage: []
persia:nats: {size: 1, resources: {limits: {cpu: 500m, memory: 2Gi}}}
persia:jobs: []
`

// gpuPoolSettings are the settings of a pool whose machines come with GPUs.
var gpuPoolSettings = values{"machineType": "a2-highgpu-8g", "gpu": values{"type": "nvidia-tesla-a100", "count": 8}}

// edit is one of a setting, from one value to another.
type edit struct{ before, after values }

// poolEdits returns one edit of each setting of a node pool, by its field.
func poolEdits() map[string]edit {
	autoscaled := values{"nodes": nil, "autoscaling": values{"minNodes": 0, "maxNodes": 4}}
	// What is not given before is the pool as it is.
	return map[string]edit{
		"Name":               {nil, values{"name": "others"}},
		"MachineType":        {nil, values{"machineType": "n2-standard-16"}},
		"Zones":              {nil, values{"zones": []any{"us-central1-b"}}},
		"Nodes":              {nil, values{"nodes": 3}},
		"Autoscaling":        {autoscaled, values{"autoscaling": values{"minNodes": 1, "maxNodes": 5}}},
		"Spot":               {nil, values{"spot": true}},
		"QueuedProvisioning": {autoscaled, values{"queuedProvisioning": true}},
		"Reservation":        {nil, values{"reservation": "workers"}},
		"CompactPlacement":   {nil, values{"compactPlacement": true}},
		"GPU": {
			values{"machineType": "n1-standard-8", "gpu": values{"type": "nvidia-tesla-t4", "count": 1}},
			values{"gpu": values{"type": "nvidia-tesla-t4", "count": 2}},
		},
		"ImageType":      {nil, values{"imageType": "UBUNTU_CONTAINERD"}},
		"Disk":           {nil, values{"disk": values{"type": "pd-ssd", "sizeGb": 200}}},
		"LocalSSDs":      {nil, values{"localSsdCount": 2}},
		"GVNIC":          {nil, values{"gvnic": false}},
		"FastSocket":     {gpuPoolSettings, values{"fastSocket": true}},
		"SecureBoot":     {nil, values{"secureBoot": false}},
		"SpareNodes":     {nil, values{"spareNodes": 1}},
		"MaxPodsPerNode": {nil, values{"maxPodsPerNode": 32}},
		"Upgrade":        {nil, values{"upgrade": values{"strategy": "BLUE_GREEN"}}},
		"Labels":         {nil, values{"labels": values{"team": "ads"}}},
		"Taints":         {nil, values{"taints": []any{values{"key": "team", "value": "ads", "effect": "NoSchedule"}}}},
	}
}

// TestChangesOfNodePools checks that Google Cloud applies a change of each setting of a node pool
// as the tag change says.
func TestChangesOfNodePools(t *testing.T) {
	cases := poolEdits()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Pool]()) {
		t.Run(field.Name, func(t *testing.T) {
			c, ok := cases[field.Name]
			require.True(t, ok, "write an edit of it")
			diff := newGoogle(t).diff(nodePoolType, poolOf(t, c.before), poolOf(t, c.before, c.after))
			if field.Tag.Get("change") == "none" {
				assert.Equal(t, plugin.DiffNone, diff.Changes)
				return
			}
			replaces, ok := map[string]bool{"update": false, "replace": true}[field.Tag.Get("change")]
			require.True(t, ok, "tag change")
			assert.Equal(t, plugin.DiffSome, diff.Changes)
			assert.Equal(t, replaces, diff.Replace(), "%v", diff.DetailedDiff)
		})
	}
}

// TestChangeOfGPUsIsShownAsReplacement holds that a preview names what costs a GPU
// pool its nodes.
func TestChangeOfGPUsIsShownAsReplacement(t *testing.T) {
	gpu := func(extra values) values {
		changed := maps.Clone(gpuPoolSettings["gpu"].(values))
		maps.Copy(changed, extra)
		return values{"gpu": changed}
	}
	for _, c := range []struct {
		name string
		edit values
		path string
		kind plugin.DiffKind
	}{
		{"partition", gpu(values{"partition": "1g.5gb"}),
			"nodeConfig.guestAccelerators[0].gpuPartitionSize", plugin.DiffUpdateReplace},
		{"sharing", gpu(values{"sharing": values{"strategy": "TIME_SHARING", "maxClients": 4}}),
			"nodeConfig.guestAccelerators[0].gpuSharingConfig", plugin.DiffAddReplace},
		{"spot", values{"spot": true}, "nodeConfig.spot", plugin.DiffUpdateReplace},
		{"reservation", values{"reservation": "a100"}, "nodeConfig.reservationAffinity", plugin.DiffAddReplace},
		{"placement", values{"compactPlacement": true}, "placementPolicy", plugin.DiffAddReplace},
	} {
		t.Run(c.name, func(t *testing.T) {
			diff := newGoogle(t).diff(nodePoolType, poolOf(t, gpuPoolSettings), poolOf(t, gpuPoolSettings, c.edit))
			assert.Equal(t, c.kind, diff.DetailedDiff[c.path].Kind, "%v", diff.DetailedDiff)
			assert.True(t, diff.DeleteBeforeReplace, "two pools cannot have one name")
		})
	}
}

// poolStackOf returns the configuration of a stack with one node pool. settings replace the
// pool's settings, and nil removes one.
func poolStackOf(t *testing.T, settings ...values) values {
	t.Helper()
	pool := values{"name": "workers", "machineType": "n2-standard-8", "nodes": 2}
	for _, s := range settings {
		maps.Copy(pool, s)
	}
	maps.DeleteFunc(pool, func(_ string, value any) bool { return value == nil })
	var file values
	require.NoError(t, yaml.Unmarshal([]byte(poolStack), &file))
	file["persia:nodePools"] = []any{pool}
	return file
}

// poolOf runs the program with one node pool, and returns the inputs of the pool.
func poolOf(t *testing.T, settings ...values) resource.PropertyMap {
	t.Helper()
	mocks := &nodePoolMocks{}
	file := poolStackOf(t, settings...)
	name := file["persia:nodePools"].([]any)[0].(values)["name"]
	ctx, err := pulumi.NewContext(t.Context(), pulumi.RunInfo{Project: "persia", Stack: "stack", Config: configuration(t, file), Mocks: mocks})
	require.NoError(t, err)
	require.NoError(t, pulumi.RunWithContext(ctx, stack.Deploy))
	i := slices.IndexFunc(mocks.pools, func(inputs resource.PropertyMap) bool {
		return inputs["name"].StringValue() == name
	})
	require.GreaterOrEqual(t, i, 0, "no such pool")
	return mocks.pools[i]
}

// nodePoolMocks stand in for the Pulumi engine and keep the node pools.
type nodePoolMocks struct {
	mu    sync.Mutex
	pools []resource.PropertyMap
}

func (m *nodePoolMocks) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	outputs := args.Inputs.Copy()
	switch args.TypeToken {
	case nodePoolType:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.pools = append(m.pools, args.Inputs)
	case clusterType:
		outputs["endpoint"] = resource.NewProperty("203.0.113.7")
		outputs["masterAuth"] = resource.NewPropertyValue(values{"clusterCaCertificate": ""})
	case accountType:
		outputs["email"] = resource.NewProperty("nodes@my-project.iam.gserviceaccount.com")
		outputs["member"] = resource.NewProperty("serviceAccount:nodes@my-project.iam.gserviceaccount.com")
	}
	return args.Name, outputs, nil
}

func (m *nodePoolMocks) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	if outputs, asked := noOutputs(args.Token); asked {
		return outputs, nil
	}
	return nil, fmt.Errorf("the program calls %s, which a stack of pools does not need", args.Token)
}

// noOutputs answers the program's questions for the last update: nothing is kept here.
func noOutputs(token string) (outputs resource.PropertyMap, asked bool) {
	return properties(values{"outputs": values{}}), token == "pulumi:pulumi:readStackOutputs" || token == "pulumi:pulumi:readStackResourceOutputs"
}

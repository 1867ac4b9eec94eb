package gke_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

type settings = map[string]any

// ignoredOfPools are the fields that GKE sets on every pool.
var ignoredOfPools = []string{"initialNodeCount", "nodeConfig.kubeletConfig", "nodeConfig.resourceLabels"}

func TestNodePools(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	surge := settings{"strategy": "SURGE", "maxSurge": 1.0, "maxUnavailable": 0.0}
	lacking := func(nodes float64) settings {
		return settings{"strategy": "SURGE", "maxSurge": 0.0, "maxUnavailable": nodes}
	}
	cases := map[string]struct {
		machine    string
		nodes      float64
		secureBoot bool
		streaming  bool
		upgrade    settings
	}{
		"system":            {"e2-standard-4", 3, true, true, surge},
		"nn-workers":        {"a2-highgpu-8g", 8, false, false, lacking(1)}, // the driver is of Ubuntu's installer
		"dataloaders":       {"n2-highmem-32", 13, true, true, lacking(1)},
		"embedding-workers": {"c2-standard-30", 100, true, true, lacking(5)},
		"embedding-ps":      {"m2-ultramem-416", 30, true, true, lacking(2)},
		"nats":              {"n2-highmem-32", 9, true, true, surge},
	}
	require.Len(t, prod.All(t, testkit.NodePool), len(cases))
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			pool := prod.One(t, testkit.NodePool, "persia-prod-"+name)
			for path, want := range map[string]any{
				"nodeCount":                                       want.nodes,
				"maxPodsPerNode":                                  110.0,
				"management.autoRepair":                           true,
				"management.autoUpgrade":                          true,
				"upgradeSettings":                                 want.upgrade,
				"nodeConfig.machineType":                          want.machine,
				"nodeConfig.diskType":                             "pd-balanced",
				"nodeConfig.diskSizeGb":                           100.0,
				"nodeConfig.spot":                                 false,
				"nodeConfig.workloadMetadataConfig.mode":          "GKE_METADATA",
				"nodeConfig.serviceAccount":                       "persia-prod-nodes@my-project.iam.gserviceaccount.com",
				`nodeConfig.metadata["disable-legacy-endpoints"]`: "true",
				"nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring": true,
				"nodeConfig.shieldedInstanceConfig.enableSecureBoot":          want.secureBoot,
			} {
				assert.Equal(t, want, testkit.At(t, pool, path), path)
			}
			assert.Equal(t, want.streaming, testkit.Found(t, pool, "nodeConfig.gcfsConfig.enabled") == true, "image streaming")
			for _, path := range []string{
				"autoscaling", "queuedProvisioning", "placementPolicy",
				"nodeConfig.reservationAffinity", "nodeConfig.fastSocket", "nodeConfig.bootDiskKmsKey", "nodeConfig.ephemeralStorageLocalSsdConfig",
			} {
				assert.Nil(t, testkit.Found(t, pool, path), path)
			}
			assert.Equal(t, ignoredOfPools, pool.RegisterRPC.GetIgnoreChanges())
		})
	}
}

// TestNodePoolSettings changes each setting of a pool that nothing uses, and compares the input
// that it affects before and after. Nil is no value.
func TestNodePoolSettings(t *testing.T) {
	cpuPool := settings{"name": "spare", "machineType": "n2-standard-32", "nodes": 2}
	gpuPool := settings{"name": "spare", "machineType": "a2-highgpu-8g", "nodes": 2, "gpu": settings{"type": "nvidia-tesla-a100", "count": 8}}
	gpu := func(extra settings) settings {
		changed := settings{"type": "nvidia-tesla-a100", "count": 8}
		maps.Copy(changed, extra)
		return settings{"gpu": changed}
	}
	scaled := func(extra settings) settings {
		changed := settings{"nodes": nil, "autoscaling": settings{"minNodes": 0, "maxNodes": 7}}
		maps.Copy(changed, extra)
		return changed
	}
	none := settings{}

	for _, c := range []struct {
		name          string
		pool          settings
		path          string
		byDefault     any
		edit, cluster settings
		then          any
	}{
		{"autoscaling", cpuPool, "autoscaling", nil, scaled(none), nil,
			settings{"totalMinNodeCount": 0.0, "totalMaxNodeCount": 7.0, "locationPolicy": "BALANCED"}},
		{"autoscaling of GPUs", gpuPool, "autoscaling", nil, scaled(none), nil,
			settings{"totalMinNodeCount": 0.0, "totalMaxNodeCount": 7.0, "locationPolicy": "ANY"}},
		{"autoscaling of spot", cpuPool, "autoscaling.locationPolicy", nil, scaled(settings{"spot": true}), nil, "ANY"},
		{"location policy", gpuPool, "autoscaling.locationPolicy", nil,
			scaled(settings{"autoscaling": settings{"minNodes": 0, "maxNodes": 7, "locationPolicy": "BALANCED"}}), nil, "BALANCED"},
		{"no fixed count beside autoscaling", cpuPool, "nodeCount", 2.0, scaled(none), nil, nil},
		{"nodes", cpuPool, "nodeCount", 2.0, settings{"nodes": 5}, nil, 5.0},
		{"zones", cpuPool, "nodeLocations", []any{"us-central1-c"}, settings{"zones": []any{"us-central1-a", "us-central1-b"}}, nil,
			[]any{"us-central1-a", "us-central1-b"}},
		{"nodes over zones", cpuPool, "nodeCount", 2.0, settings{"zones": []any{"us-central1-a", "us-central1-b"}}, nil, 1.0},

		{"spot", cpuPool, "nodeConfig.spot", false, settings{"spot": true}, nil, true},
		{"spot's taint", cpuPool, "nodeConfig.taints", []any{}, settings{"spot": true}, nil,
			[]any{settings{"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}}},
		{"queued provisioning", gpuPool, "queuedProvisioning", nil, scaled(settings{"queuedProvisioning": true}), nil,
			settings{"enabled": true}},
		{"queued provisioning takes no reservation", gpuPool, "nodeConfig.reservationAffinity", nil, scaled(settings{"queuedProvisioning": true}), nil,
			settings{"consumeReservationType": "NO_RESERVATION"}},
		{"queued provisioning repairs nothing", gpuPool, "management.autoRepair", true, scaled(settings{"queuedProvisioning": true}), nil, false},
		{"reservation", gpuPool, "nodeConfig.reservationAffinity", nil, settings{"reservation": "projects/other-project/reservations/a100"}, nil,
			settings{"consumeReservationType": "SPECIFIC_RESERVATION", "key": "compute.googleapis.com/reservation-name",
				"values": []any{"projects/other-project/reservations/a100"}}},
		{"compact placement", gpuPool, "placementPolicy", nil, settings{"compactPlacement": true}, nil, settings{"type": "COMPACT"}},

		{"GPU", gpuPool, "nodeConfig.guestAccelerators", []any{settings{"type": "nvidia-tesla-a100", "count": 8.0,
			"gpuDriverInstallationConfig": settings{"gpuDriverVersion": "DEFAULT"}}}, nil, nil,
			[]any{settings{"type": "nvidia-tesla-a100", "count": 8.0,
				"gpuDriverInstallationConfig": settings{"gpuDriverVersion": "DEFAULT"}}}},
		{"GPU partition", gpuPool, "nodeConfig.guestAccelerators[0].gpuPartitionSize", nil, gpu(settings{"partition": "1g.5gb"}), nil, "1g.5gb"},
		{"fast socket", gpuPool, "nodeConfig.fastSocket", nil, settings{"fastSocket": true}, nil, settings{"enabled": true}},

		{"machine type", cpuPool, "nodeConfig.machineType", "n2-standard-32", settings{"machineType": "c2-standard-60"}, nil, "c2-standard-60"},
		{"image type", cpuPool, "nodeConfig.imageType", "COS_CONTAINERD", settings{"imageType": "UBUNTU_CONTAINERD"}, nil, "UBUNTU_CONTAINERD"},
		{"disk type", cpuPool, "nodeConfig.diskType", "pd-balanced", settings{"disk": settings{"type": "pd-ssd"}}, nil, "pd-ssd"},
		{"disk type of a machine that takes one only", cpuPool, "nodeConfig.diskType", "pd-balanced", settings{"machineType": "c4-standard-32"}, nil, "hyperdisk-balanced"},
		{"disk size", cpuPool, "nodeConfig.diskSizeGb", 100.0, settings{"disk": settings{"sizeGb": 500}}, nil, 500.0},
		{"local SSDs", cpuPool, "nodeConfig.ephemeralStorageLocalSsdConfig", nil, settings{"localSsdCount": 4}, nil, settings{"localSsdCount": 4.0}},
		{"pods a node", cpuPool, "maxPodsPerNode", 110.0, settings{"maxPodsPerNode": 32}, nil, 32.0},
		{"labels", cpuPool, "nodeConfig.labels.team", nil, settings{"labels": settings{"team": "ads"}}, nil, "ads"},
		{"taints", cpuPool, "nodeConfig.taints", []any{}, settings{"taints": []any{settings{"key": "team", "value": "ads", "effect": "PreferNoSchedule"}}}, nil,
			[]any{settings{"key": "team", "value": "ads", "effect": "PREFER_NO_SCHEDULE"}}},

		{"surge", cpuPool, "upgradeSettings", settings{"strategy": "SURGE", "maxSurge": 1.0, "maxUnavailable": 0.0},
			settings{"upgrade": settings{"maxSurge": 3, "maxUnavailable": 2}}, nil,
			settings{"strategy": "SURGE", "maxSurge": 3.0, "maxUnavailable": 2.0}},
		{"surge of scarce machines", gpuPool, "upgradeSettings.maxSurge", 0.0, settings{"upgrade": settings{"maxSurge": 1}}, nil, 1.0},
		{"surge of reserved machines", cpuPool, "upgradeSettings", settings{"strategy": "SURGE", "maxSurge": 1.0, "maxUnavailable": 0.0},
			settings{"reservation": "spare"}, nil, settings{"strategy": "SURGE", "maxSurge": 0.0, "maxUnavailable": 1.0}},

		{"image streaming", cpuPool, "nodeConfig.gcfsConfig.enabled", true, nil, settings{"imageStreaming": false}, nil},
		{"image streaming on Ubuntu", cpuPool, "nodeConfig.gcfsConfig.enabled", true, settings{"imageType": "UBUNTU_CONTAINERD"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.byDefault, testkit.Found(t, sparePool(t, c.pool, nil, nil), c.path), "by default")
			assert.Equal(t, c.then, testkit.Found(t, sparePool(t, c.pool, c.edit, c.cluster), c.path))
		})
	}
}

// sparePool returns a pool that is added to the published deployment, after some edits of the pool
// and of the cluster. A nil removes a setting.
func sparePool(t *testing.T, pool, edits, cluster settings) testkit.Resource {
	t.Helper()
	configuration := programtest.ReadStack(t, "prod")
	programtest.Edit(t, configuration, "persia:nvidiaDriver", func(driver any) { driver.(settings)["installer"] = "managed" })
	programtest.Edit(t, configuration, "persia:cluster", func(value any) { maps.Copy(value.(settings), cluster) })
	pool = maps.Clone(pool)
	maps.Copy(pool, edits)
	maps.DeleteFunc(pool, func(_ string, value any) bool { return value == nil })
	addPool(t, configuration, pool)
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	return recorder.One(t, testkit.NodePool, "persia-prod-spare")
}

func addPool(t *testing.T, configuration map[string]string, pool settings) {
	t.Helper()
	var pools []settings
	require.NoError(t, json.Unmarshal([]byte(configuration["persia:nodePools"]), &pools))
	text, err := json.Marshal(append(pools, pool))
	require.NoError(t, err)
	configuration["persia:nodePools"] = string(text)
}

func TestAutoscaledPoolsOverZones(t *testing.T) {
	configuration := programtest.ReadStack(t, "prod")
	programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
		cluster.(settings)["zones"] = []any{"us-central1-a", "us-central1-c"}
		cluster.(settings)["systemPool"].(settings)["nodes"] = 4
	})
	programtest.Edit(t, configuration, "persia:nodePools", func(pools any) {
		for _, pool := range pools.([]any) {
			delete(pool.(settings), "nodes")
			pool.(settings)["autoscaling"] = settings{"minNodes": 0, "maxNodes": 200}
		}
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	assert.Equal(t, 2.0, testkit.At(t, recorder.One(t, testkit.NodePool, "persia-prod-system"), "nodeCount"), "a zone")
	for name, policy := range map[string]string{"nn-workers": "ANY", "dataloaders": "BALANCED"} {
		pool := recorder.One(t, testkit.NodePool, "persia-prod-"+name)
		assert.Equal(t, 200.0, testkit.At(t, pool, "autoscaling.totalMaxNodeCount"))
		assert.Equal(t, policy, testkit.At(t, pool, "autoscaling.locationPolicy"))
		assert.Nil(t, testkit.Found(t, pool, "nodeCount"))
		assert.Equal(t, append(ignoredOfPools, "nodeCount"), pool.RegisterRPC.GetIgnoreChanges())
	}
}

// TestNodePoolsAreProtected: while the cluster is protected from deletion, Pulumi
// refuses to replace or to remove a pool.
func TestNodePoolsAreProtected(t *testing.T) {
	for name, protection := range map[string]any{"by default": nil, "true": true, "false": false} {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "prod")
			programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
				cluster.(settings)["deletionProtection"] = protection
			})
			recorder, err := programtest.Deploy(t, configuration)
			require.NoError(t, err)
			for _, pool := range recorder.All(t, testkit.NodePool) {
				assert.Equal(t, protection != false, pool.RegisterRPC.GetProtect(), pool.Name)
			}
		})
	}
}

// TestRolesTolerateTaintsOfTheirPool checks the taints of the stack file, and the taints that GKE
// adds.
func TestRolesTolerateTaintsOfTheirPool(t *testing.T) {
	configuration := programtest.ReadStack(t, "prod")
	programtest.Edit(t, configuration, "persia:nodePools", func(pools any) {
		for _, pool := range pools.([]any)[:2] {
			pool.(settings)["spot"] = true
		}
	})
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	for role, want := range map[string][]string{
		"nn-worker":        {"cloud.google.com/gke-spot", "nvidia.com/gpu"},
		"dataloader":       {"persia.com/dedicated", "cloud.google.com/gke-spot"},
		"embedding-worker": {"persia.com/dedicated"},
	} {
		set := testkit.Object[appsv1.StatefulSet](t, recorder.One(t, testkit.StatefulSet, "criteo-"+role))
		var keys []string
		for _, toleration := range set.Spec.Template.Spec.Tolerations {
			keys = append(keys, toleration.Key)
		}
		assert.Equal(t, want, keys, role)
	}
}

// TestGPUPoolsComeAfterTheSystemPool checks the order that makes GKE taint GPU pools.
func TestGPUPoolsComeAfterTheSystemPool(t *testing.T) {
	for _, name := range []string{"dev", "prod"} {
		var system string
		var gpus, others []string
		for _, pool := range programtest.DeployStack(t, name).All(t, testkit.NodePool) {
			switch {
			case testkit.At(t, pool, "name") == "system":
				system = pool.RegisterRPC.GetName()
			case testkit.Found(t, pool, "nodeConfig.guestAccelerators[0].type") != nil:
				gpus = append(gpus, strings.Join(pool.RegisterRPC.GetDependencies(), " "))
			default:
				others = append(others, strings.Join(pool.RegisterRPC.GetDependencies(), " "))
			}
		}
		require.NotEmpty(t, gpus, name)
		for _, dependencies := range gpus {
			assert.Contains(t, dependencies, "::"+system, "%s: a GPU pool", name)
		}
		for _, dependencies := range others {
			assert.NotContains(t, dependencies, "::"+system, "%s: a pool without GPUs need not wait", name)
		}
	}
}

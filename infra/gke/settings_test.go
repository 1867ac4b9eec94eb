package gke_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

const aKey = "projects/my-keys/locations/us-central1/keyRings/gke/cryptoKeys/cluster"

type settings = map[string]any

// ofCluster are edits of persia:cluster, and of whole keys.
func ofCluster(edits settings) testkit.Edits {
	all := testkit.Edits{}
	for path, value := range edits {
		if !strings.HasPrefix(path, "persia:") {
			path = "persia:cluster." + path
		}
		all[path] = value
	}
	return all
}

// upBefore is the state of the stack dev after an update, or empty.
func upBefore(state settings) testkit.Cloud {
	if state == nil {
		return nil
	}
	return testkit.Cloud{"outputs": settings{"clusterName": "persia-dev"}, "resources": state}
}

// TestClusterSettings: each setting of persia:cluster reaches Google Cloud. The golden plans show the defaults.
func TestClusterSettings(t *testing.T) {
	for _, c := range []struct {
		setting string
		value   any
		// of is the resource's type and the end of its name.
		of, name, path string
		// input is the value that reaches Google Cloud, if it is not the setting's own.
		input any
	}{
		{"maintenance.exclusions", []any{settings{"name": "run", "start": "2026-12-01T00:00:00Z", "end": "2027-01-31T00:00:00Z"}}, testkit.Cluster, "", "maintenancePolicy.maintenanceExclusions[0]",
			settings{"exclusionName": "run", "startTime": "2026-12-01T00:00:00Z", "endTime": "2027-01-31T00:00:00Z", "exclusionOptions": settings{"scope": "NO_MINOR_OR_NODE_UPGRADES"}}},
		{"network.pods", "10.128.0.0/14", testkit.Subnetwork, "", "secondaryIpRanges[0].ipCidrRange", nil},
		{"network.services", "10.9.0.0/20", testkit.Subnetwork, "", "secondaryIpRanges[1].ipCidrRange", nil},
		{"encryption.bootDisks", aKey, testkit.Cluster, "", "nodeConfig.bootDiskKmsKey", nil},
		{"encryption.bootDisks", aKey, testkit.NodePool, "-nn-workers", "nodeConfig.bootDiskKmsKey", nil},
		{"logging.components", []any{"APISERVER", "SYSTEM_COMPONENTS"}, testkit.Cluster, "", "loggingConfig.enableComponents", []any{"SYSTEM_COMPONENTS", "APISERVER"}},
		{"monitoring.components", []any{"DCGM", "SYSTEM_COMPONENTS"}, testkit.Cluster, "", "monitoringConfig.enableComponents", []any{"SYSTEM_COMPONENTS", "DCGM"}},
	} {
		t.Run(c.setting+c.name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "Pulumi.prod.yaml", testkit.Edits{"persia:cluster." + c.setting: c.value})
			if c.input == nil {
				c.input = c.value
			}
			assert.Equal(t, c.input, testkit.Found(t, programtest.MustDeploy(t, configuration).One(t, c.of, "persia-prod"+c.name), c.path))
		})
	}
}

// TestNodePoolSettings: a pool's settings reach Google Cloud. What is omitted depends on its machine and image.
func TestNodePoolSettings(t *testing.T) {
	for name, c := range map[string]struct{ pool, wants string }{
		"CPUs": {`{machineType: n2-standard-32, nodes: 4, zones: [us-central1-a, us-central1-b], spot: true, disk: {type: pd-ssd, sizeGb: 500}, localSsdCount: 4, maxPodsPerNode: 32,
			labels: {team: ads}, taints: [{key: team, value: ads, effect: PreferNoSchedule}], upgrade: {maxSurge: 3, maxUnavailable: 2}}`,
			`{nodeCount: 2, nodeLocations: [us-central1-a, us-central1-b], nodeConfig.spot: true, nodeConfig.diskType: pd-ssd, nodeConfig.diskSizeGb: 500, maxPodsPerNode: 32, nodeConfig.labels.team: ads,
			nodeConfig.taints: [{key: team, value: ads, effect: PREFER_NO_SCHEDULE}, {key: cloud.google.com/gke-spot, value: "true", effect: NO_SCHEDULE}],
			nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount: 4, upgradeSettings: {strategy: SURGE, maxSurge: 3, maxUnavailable: 2}}`},
		"autoscaling":         {`{machineType: n2-standard-32, autoscaling: {minNodes: 0, maxNodes: 7}}`, `{nodeCount: null, autoscaling: {totalMinNodeCount: 0, totalMaxNodeCount: 7, locationPolicy: BALANCED}}`},
		"autoscaling of spot": {`{machineType: n2-standard-32, autoscaling: {minNodes: 0, maxNodes: 7}, spot: true}`, `{autoscaling.locationPolicy: ANY}`},
		"autoscaling of GPUs": {`{machineType: a2-highgpu-8g, gpu: {type: nvidia-tesla-a100, count: 8}, autoscaling: {minNodes: 0, maxNodes: 7}}`, `{autoscaling.locationPolicy: ANY}`},
		"a location policy":   {`{machineType: a2-highgpu-8g, gpu: {type: nvidia-tesla-a100, count: 8}, autoscaling: {minNodes: 0, maxNodes: 7, locationPolicy: BALANCED}}`, `{autoscaling.locationPolicy: BALANCED}`},
		"queued provisioning": {`{machineType: n2-standard-32, autoscaling: {minNodes: 0, maxNodes: 7}, queuedProvisioning: true}`,
			`{autoscaling.locationPolicy: ANY, queuedProvisioning: {enabled: true}, nodeConfig.reservationAffinity: {consumeReservationType: NO_RESERVATION}, management.autoRepair: false}`},
		"GPUs": {`{machineType: a2-highgpu-8g, nodes: 2, gpu: {type: nvidia-tesla-a100, count: 8}, fastSocket: true, compactPlacement: true, upgrade: {maxSurge: 1}}`,
			`{nodeConfig.guestAccelerators: [{type: nvidia-tesla-a100, count: 8, gpuDriverInstallationConfig: {gpuDriverVersion: DEFAULT}}], nodeConfig.fastSocket: {enabled: true},
			placementPolicy: {type: COMPACT}, upgradeSettings.maxSurge: 1}`},
		"scarce GPUs": {`{machineType: a2-highgpu-8g, nodes: 2, gpu: {type: nvidia-tesla-a100, count: 8}}`, `{upgradeSettings: {strategy: SURGE, maxSurge: 0, maxUnavailable: 1}}`},
		"a reservation": {`{machineType: n2-standard-32, nodes: 2, reservation: projects/other-project/reservations/a}`,
			`{nodeConfig.reservationAffinity: {consumeReservationType: SPECIFIC_RESERVATION, key: compute.googleapis.com/reservation-name, values: [projects/other-project/reservations/a]},
			upgradeSettings: {strategy: SURGE, maxSurge: 0, maxUnavailable: 1}}`},

		"general purpose":         {`{machineType: n2-highmem-32, nodes: 2}`, `{nodeConfig.gvnic.enabled: true, nodeConfig.gcfsConfig.enabled: true, nodeConfig.diskType: pd-balanced}`},
		"Ubuntu":                  {`{machineType: n2-highmem-32, nodes: 2, imageType: UBUNTU_CONTAINERD}`, `{nodeConfig.imageType: UBUNTU_CONTAINERD, nodeConfig.gvnic.enabled: null, nodeConfig.gcfsConfig.enabled: null}`},
		"memory-optimized":        {`{machineType: m2-ultramem-416, nodes: 2}`, `{nodeConfig.gvnic.enabled: null, nodeConfig.diskType: pd-balanced}`},
		"memory-optimized, newer": {`{machineType: m4-ultramem-224, nodes: 2}`, `{nodeConfig.gvnic.enabled: true, nodeConfig.diskType: hyperdisk-balanced}`},
		"A3 High with its SSDs":   {`{machineType: a3-highgpu-8g, nodes: 2}`, `{nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount: 16, nodeConfig.diskType: pd-balanced}`},
		"A4":                      {`{machineType: a4-highgpu-8g, nodes: 2}`, `{nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount: 32, nodeConfig.diskType: hyperdisk-balanced}`},
	} {
		t.Run(name, func(t *testing.T) {
			pool, wants := settings{"name": "spare"}, settings{}
			require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(c.pool, "\t", "")), &pool))
			require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(c.wants, "\t", "")), &wants))
			got := withPool(t, pool)
			for path, want := range wants {
				assert.Equal(t, want, testkit.Found(t, got, path), path)
			}
		})
	}
}

// withPool returns a pool that is added to the published deployment.
func withPool(t *testing.T, pool settings) testkit.Resource {
	t.Helper()
	if pool["zones"] == nil {
		pool["zones"] = []any{"us-central1-a"}
	}
	configuration := programtest.ReadStack(t, "Pulumi.prod.yaml", testkit.Edits{"persia:nvidiaDriver.installer": "managed", "persia:nodePools[5]": pool})
	return programtest.MustDeploy(t, configuration).One(t, testkit.NodePool, "persia-prod-spare")
}

// TestEncryptedSecrets checks that the program leaves out the encryption that GKE answers in other
// words, and no other: an edit of it must reach the cluster, and a cluster that replaces another needs it.
func TestEncryptedSecrets(t *testing.T) {
	encryption := func(state, key string) settings { return settings{"state": state, "keyName": key} }
	const range0 = "172.16.0.0/28"
	for name, c := range map[string]struct {
		key string
		// had is the encryption of the cluster in the state, which has a range, or nil before the first update.
		had          settings
		controlPlane string
		asks         any
	}{
		"at first":                      {aKey, nil, range0, encryption("ENCRYPTED", aKey)},
		"from then on":                  {aKey, encryption("ALL_OBJECTS_ENCRYPTION_ENABLED", aKey), range0, nil},
		"added later":                   {aKey, encryption("DECRYPTED", ""), range0, encryption("ENCRYPTED", aKey)},
		"with another key":              {aKey, encryption("ALL_OBJECTS_ENCRYPTION_ENABLED", aKey+"-old"), range0, encryption("ENCRYPTED", aKey)},
		"as GKE answered until 1.35":    {aKey, encryption("ENCRYPTED", aKey), range0, encryption("ENCRYPTED", aKey)},
		"none":                          {"", nil, range0, settings{"state": "DECRYPTED"}},
		"in a cluster that replaces it": {aKey, encryption("ALL_OBJECTS_ENCRYPTION_ENABLED", aKey), "10.9.0.0/28", encryption("ENCRYPTED", aKey)},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "Pulumi.prod.yaml", testkit.Edits{"persia:cluster.encryption.secrets": c.key})
			there := testkit.Cloud{}
			if c.had != nil {
				there["outputs"] = settings{"clusterName": "persia-prod"}
				there["resources"] = settings{"urn:pulumi:stack::persia::persia:gke:Cluster$gcp:container/cluster:Cluster::persia-prod": settings{
					"type": "gcp:container/cluster:Cluster", "outputs": settings{
						"project": "my-project", "location": "us-central1", "name": "persia-prod",
						"privateClusterConfig": settings{"masterIpv4CidrBlock": c.controlPlane}, "databaseEncryption": c.had}}}
			}
			registered := programtest.MustDeploy(t, configuration, there).One(t, testkit.Cluster, "persia-prod")
			assert.Equal(t, c.asks, testkit.Found(t, registered, "databaseEncryption"))
			assert.Len(t, registered.RegisterRPC.GetIgnoreChanges(), 2, "the provider validates the state's value of an ignored property")
		})
	}
}

// TestProviderGoesByDefaultCredentials: Pulumi enters the cluster as it reaches Google Cloud, without gcloud.
func TestProviderGoesByDefaultCredentials(t *testing.T) {
	provider := programtest.DeployFile(t, "Pulumi.prod.yaml").One(t, "pulumi:providers:kubernetes", "persia-prod")
	assert.Contains(t, provider.Inputs["kubeconfig"].SecretValue().Element.StringValue(), "--use_application_default_credentials")
}

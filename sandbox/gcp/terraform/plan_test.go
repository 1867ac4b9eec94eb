package terraform

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/google"
)

// stack creates the resources on which a cluster and its pools depend.
func stack(t *testing.T, settings google.Settings, over map[tokens.Type]values) *engine {
	e := newEngine(t, settings)
	for _, r := range resourcesOfAStack {
		require.NoError(t, e.up(r.token, with(r.program, over[r.token]), r.ignored...), r.token)
	}
	e.cloud.Requests()
	return e
}

func TestAnAnswerIsAChangeWhereTheProviderDoesNotComputeIt(t *testing.T) {
	on, off := values{"enabled": true}, values{"enabled": false}
	for _, c := range []struct {
		name      string
		token     tokens.Type
		settings  google.Settings
		over      values
		ignored   []string
		operation string
		path      string
		refused   bool
	}{
		{name: "kubeletConfig is taken away", token: nodePoolType, operation: "update", path: kubelet, refused: true},
		{name: "resourceLabels are taken away", token: nodePoolType, ignored: []string{kubelet}, operation: "update",
			over: values{"nodeConfig": values{"resourceLabels": nil}}, path: `nodeConfig.resourceLabels["goog-gke-node-pool-provisioning-model"]`, refused: true},
		{name: "subsetting is turned off again", token: clusterType, settings: google.Settings{L4ILBSubsetting: true}, operation: "replace", path: "enableL4IlbSubsetting"},
		{name: "subsetting is asked for", token: clusterType, settings: google.Settings{L4ILBSubsetting: true},
			over: values{"enableL4IlbSubsetting": true}, operation: "same"},
		{name: "local SSDs of A3 are taken away", token: nodePoolType, ignored: []string{kubelet},
			over: values{"nodeConfig": values{"machineType": "a3-highgpu-8g"}}, operation: "replace", path: "nodeConfig.ephemeralStorageLocalSsdConfig"},
		{name: "components in an order of their own", token: clusterType,
			over: values{"monitoringConfig": values{"enableComponents": []any{"DCGM", "SYSTEM_COMPONENTS"}}}, operation: "update", path: "monitoringConfig.enableComponents[0]"},
		{name: "secrets are encrypted under another name", token: clusterType,
			over: values{"databaseEncryption": values{"state": "ENCRYPTED", "keyName": "projects/p/locations/us/keyRings/r/cryptoKeys/k"}}, operation: "update", path: "databaseEncryption.state"},
		{name: "kube-dns comes back without a scope", token: clusterType,
			over: values{"dnsConfig": values{"clusterDns": "PLATFORM_DEFAULT"}}, operation: "update", path: "dnsConfig.clusterDnsScope"},
		{name: "the persistent disk driver comes up on", token: clusterType,
			over: values{"addonsConfig": values{"gcePersistentDiskCsiDriverConfig": off}}, operation: "update", path: "addonsConfig.gcePersistentDiskCsiDriverConfig.enabled"},
		{name: "image streaming is said to be off", token: nodePoolType, ignored: []string{kubelet},
			over: values{"nodeConfig": values{"gcfsConfig": off}}, operation: "replace", path: "nodeConfig.gcfsConfig"},
		{name: "image streaming is on", token: nodePoolType, ignored: []string{kubelet},
			over: values{"nodeConfig": values{"gcfsConfig": on}}, operation: "same"},
		{name: "the legacy datapath", token: clusterType, over: values{"datapathProvider": "LEGACY_DATAPATH"}, operation: "replace", path: "datapathProvider"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := stack(t, c.settings, map[tokens.Type]values{c.token: c.over})
			program := with(map[tokens.Type]values{clusterType: cluster, nodePoolType: nodePool}[c.token], c.over)
			operation, paths := e.plan(c.token, program, c.ignored...)
			assert.Equal(t, c.operation, operation, paths)
			if c.path != "" {
				assert.Contains(t, paths, c.path)
			}
			if c.refused {
				assert.ErrorContains(t, e.up(c.token, program, c.ignored...), "Must specify a field to update., badRequest")
			}
		})
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		name      string
		token     tokens.Type
		over      values
		operation string
	}{
		{"a machine type", nodePoolType, values{"nodeConfig": values{"machineType": "n2-standard-16"}}, "update"},
		{"a disk's size", nodePoolType, values{"nodeConfig": values{"diskSizeGb": 200}}, "update"},
		{"another label", nodePoolType, values{"nodeConfig": values{"labels": values{"team": "ads"}}}, "update"},
		{"no taint", nodePoolType, values{"nodeConfig": values{"taints": []any{}}}, "update"},
		{"a number of nodes", nodePoolType, values{"nodeCount": 3}, "update"},
		{"autoscaling", nodePoolType, values{"nodeCount": nil, "autoscaling": values{"totalMinNodeCount": 0, "totalMaxNodeCount": 4, "locationPolicy": "ANY"}}, "update"},
		{"spot", nodePoolType, values{"nodeConfig": values{"spot": true}}, "replace"},
		{"a service account", nodePoolType, values{"nodeConfig": values{"serviceAccount": "other@p.iam.gserviceaccount.com"}}, "replace"},
		{"scopes in another order", nodePoolType, values{"nodeConfig": values{"oauthScopes": []any{"https://www.googleapis.com/auth/cloud-platform"}}}, "same"},
		{"secure boot", nodePoolType, values{"nodeConfig": values{"shieldedInstanceConfig": values{"enableSecureBoot": false}}}, "replace"},
		{"a name", nodePoolType, values{"name": "other"}, "replace"},
		{"pods of a node", nodePoolType, values{"maxPodsPerNode": 64}, "replace"},
		{"a release channel", clusterType, values{"releaseChannel": values{"channel": "STABLE"}}, "update"},
		{"a datapath", clusterType, values{"datapathProvider": "LEGACY_DATAPATH"}, "replace"},
		{"no exclusion", clusterType, values{"maintenancePolicy": values{"maintenanceExclusions": []any{}}}, "update"},
		{"no authorized network", clusterType, values{"masterAuthorizedNetworksConfig": values{"cidrBlocks": []any{}}}, "update"},
		{"a control plane's range", clusterType, values{"privateClusterConfig": values{"masterIpv4CidrBlock": "172.16.1.0/28"}}, "replace"},
		{"protection", clusterType, values{"deletionProtection": true}, "update"},
		{"a wider range", subnetworkType, values{"ipCidrRange": "10.0.0.0/19"}, "update"},
		{"a narrower range", subnetworkType, values{"ipCidrRange": "10.0.0.0/21"}, "replace"},
		{"a larger disk", diskType, values{"size": 600}, "update"},
		{"a smaller disk", diskType, values{"size": 400}, "replace"},
		{"another label of a disk", diskType, values{"labels": values{"team": "ads"}}, "update"},
		{"a type of disk", regionDiskType, values{"type": "pd-balanced"}, "replace"},
		{"a larger share", instanceType, values{"fileShares": values{"capacityGb": 5120}}, "update"},
		{"a tier", instanceType, values{"tier": "ZONAL"}, "replace"},
		{"no versions", bucketType, values{"versioning": values{"enabled": false}}, "update"},
		{"a bucket's location", bucketType, values{"location": "EU"}, "replace"},
		{"a bucket's location in lower case", bucketType, values{"location": "US-CENTRAL1"}, "same"},
		{"a schedule", planType, values{"backupSchedule": values{"cronSchedule": "0 5 * * *"}}, "update"},
		{"a role", memberType, values{"role": "roles/viewer"}, "replace"},
		{"a display name", accountType, values{"displayName": "Machines"}, "update"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := stack(t, google.Settings{}, nil)
			for _, r := range resourcesOfAStack {
				if r.token != c.token {
					continue
				}
				edited := with(r.program, c.over)
				operation, paths := e.plan(c.token, edited, r.ignored...)
				require.Equal(t, c.operation, operation, paths)
				if operation == "update" {
					require.NoError(t, e.up(c.token, edited, r.ignored...))
					operation, paths = e.plan(c.token, edited, r.ignored...)
					assert.Equal(t, "same", operation, "after the edit: %v", paths)
				}
			}
		})
	}
}

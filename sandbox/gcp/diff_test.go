package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDiffTellsInPlaceFromReplace(t *testing.T) {
	const same, inPlace, replace = "same", "in place", "replace"
	for _, c := range []struct {
		token, path string
		value       any
		want        string
	}{
		{nodePoolType, "nodeConfig.machineType", "n2-standard-8", inPlace},
		{nodePoolType, "nodeConfig.diskSizeGb", 200, inPlace},
		{nodePoolType, "nodeConfig.diskType", "pd-ssd", inPlace},
		{nodePoolType, "nodeConfig.imageType", "COS_CONTAINERD", inPlace},
		{nodePoolType, "nodeConfig.labels", values{"persia.com/part": "other"}, inPlace},
		{nodePoolType, `nodeConfig.labels["persia.com/part"]`, "other", inPlace},
		{nodePoolType, "nodeConfig.labels", nil, same},
		{nodePoolType, "nodeConfig.tags", []any{"open"}, inPlace},
		{nodePoolType, "nodeConfig.taints", []any{}, inPlace},
		{nodePoolType, "nodeConfig.taints[0].effect", "NO_EXECUTE", inPlace},
		{nodePoolType, "nodeConfig.workloadMetadataConfig.mode", "GCE_METADATA", inPlace},
		{nodePoolType, "nodeCount", 9, inPlace},
		{nodePoolType, "autoscaling", values{"totalMinNodeCount": 1}, inPlace},
		{nodePoolType, "nodeLocations", []any{"us-central1-a"}, inPlace},
		{nodePoolType, "upgradeSettings", values{"maxSurge": 0}, inPlace},
		{nodePoolType, "management.autoRepair", false, inPlace},
		{nodePoolType, "nodeConfig.guestAccelerators[0].count", 4, replace},
		{nodePoolType, "nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion", "LATEST", replace},
		{nodePoolType, "nodeConfig.guestAccelerators", nil, same},
		{nodePoolType, "nodeConfig.spot", true, replace},
		{nodePoolType, "nodeConfig.serviceAccount", "other@my-project.iam.gserviceaccount.com", replace},
		{nodePoolType, "nodeConfig.serviceAccount", unknownValue, replace},
		{nodePoolType, "nodeConfig.oauthScopes[0]", "https://www.googleapis.com/auth/compute", replace},
		{nodePoolType, "nodeConfig.metadata.disable-legacy-endpoints", "false", replace},
		{nodePoolType, "nodeConfig.bootDiskKmsKey", "projects/p/locations/l/keyRings/r/cryptoKeys/k", replace},
		{nodePoolType, "nodeConfig.fastSocket", values{"enabled": true}, inPlace},
		{nodePoolType, "nodeConfig.gcfsConfig", values{"enabled": true}, replace},
		{nodePoolType, "nodeConfig.gvnic", values{"enabled": true}, replace},
		{nodePoolType, "nodeConfig.localSsdCount", 2, replace},
		{nodePoolType, "nodeConfig.ephemeralStorageLocalSsdConfig", values{"localSsdCount": 2}, replace},
		{nodePoolType, "nodeConfig.shieldedInstanceConfig.enableSecureBoot", true, replace},
		{nodePoolType, "nodeConfig.reservationAffinity", values{"consumeReservationType": "ANY_RESERVATION"}, replace},
		{nodePoolType, "nodeConfig", nil, same},
		{nodePoolType, "nodeConfig", unknownValue, replace},
		{nodePoolType, "placementPolicy", values{"type": "COMPACT"}, replace},
		{nodePoolType, "queuedProvisioning", values{"enabled": true}, replace},
		{nodePoolType, "maxPodsPerNode", 32, replace},
		{nodePoolType, "initialNodeCount", 3, replace},
		{nodePoolType, "name", "other", replace},
		{nodePoolType, "cluster", unknownValue, replace},
		{nodePoolType, "location", "us-east1", replace},

		{clusterType, "deletionProtection", true, inPlace},
		{clusterType, "nodeLocations", []any{"us-central1-a"}, inPlace},
		{clusterType, "releaseChannel.channel", "STABLE", inPlace},
		{clusterType, "addonsConfig.gcsFuseCsiDriverConfig.enabled", false, inPlace},
		{clusterType, "masterAuthorizedNetworksConfig", values{"cidrBlocks": []any{}}, same},
		{clusterType, "privateClusterConfig.enablePrivateEndpoint", true, inPlace},
		{clusterType, "nodeConfig.machineType", "n2-standard-8", inPlace},
		{clusterType, "maintenancePolicy", values{"dailyMaintenanceWindow": values{"startTime": "03:00"}}, inPlace},
		{clusterType, "dnsConfig", values{"clusterDns": "PLATFORM_DEFAULT"}, inPlace},
		{clusterType, "workloadIdentityConfig", values{}, inPlace},
		{clusterType, "enableShieldedNodes", false, inPlace},
		{clusterType, "binaryAuthorization.evaluationMode", "DISABLED", inPlace},
		{clusterType, "securityPostureConfig.mode", "DISABLED", inPlace},
		{clusterType, "databaseEncryption", values{"state": "DECRYPTED"}, same},
		{clusterType, "clusterAutoscaling.autoscalingProfile", "BALANCED", same},
		{clusterType, "nodePoolDefaults.nodeConfigDefaults.gcfsConfig.enabled", false, inPlace},
		{clusterType, "addonsConfig.gkeBackupAgentConfig.enabled", false, inPlace},
		{clusterType, "monitoringConfig.enableComponents", []any{"SYSTEM_COMPONENTS"}, inPlace},
		{clusterType, "costManagementConfig.enabled", false, inPlace},
		{clusterType, "privateClusterConfig.enablePrivateNodes", false, replace},
		{clusterType, "privateClusterConfig.masterIpv4CidrBlock", "10.1.0.0/28", replace},
		{clusterType, "privateClusterConfig", nil, same},
		{clusterType, "ipAllocationPolicy.clusterSecondaryRangeName", "other", replace},
		{clusterType, "datapathProvider", "LEGACY_DATAPATH", replace},
		{clusterType, "network", unknownValue, replace},
		{clusterType, "subnetwork", "other", replace},
		{clusterType, "name", "other", replace},
		{clusterType, "location", "us-east1", replace},

		{subnetworkType, "privateIpGoogleAccess", false, same},
		{subnetworkType, "secondaryIpRanges", []any{}, same},
		{subnetworkType, "ipCidrRange", "10.0.0.0/16", inPlace},
		{subnetworkType, "ipCidrRange", "10.0.0.0/28", replace},
		{subnetworkType, "ipCidrRange", "10.9.0.0/16", replace},
		{subnetworkType, "ipCidrRange", unknownValue, replace},
		{subnetworkType, "network", unknownValue, replace},
		{networkType, "autoCreateSubnetworks", true, replace},
		{accountType, "displayName", "Other", inPlace},
		{accountType, "accountId", "other", replace},
		{iamMemberType, "role", "roles/viewer", replace},
		{iamMemberType, "member", unknownValue, replace},
		{keyGrantType, "cryptoKeyId", "projects/p/locations/l/keyRings/r/cryptoKeys/other", replace},
		{keyGrantType, "member", unknownValue, replace},
		{backupPlanType, "backupSchedule.cronSchedule", "0 5 * * *", inPlace},
		{backupPlanType, "retentionPolicy.backupRetainDays", 30, inPlace},
		{backupPlanType, "cluster", unknownValue, replace},
		{backupPlanType, "location", "us-east1", replace},
	} {
		t.Run(c.token+" "+c.path, func(t *testing.T) {
			inputs := map[string]resource.PropertyMap{
				nodePoolType:   gpuPool(),
				clusterType:    clusterInputs(),
				subnetworkType: subnetworkInputs("10.0.0.0/24"),
				networkType:    properties(values{"project": "my-project", "name": "persia", "autoCreateSubnetworks": false}),
				accountType:    properties(values{"project": "my-project", "accountId": "persia-nodes"}),
				iamMemberType:  properties(values{"project": "my-project", "role": "roles/editor", "member": "user:a@b.c"}),
				keyGrantType:   properties(values{"cryptoKeyId": "projects/p/locations/l/keyRings/r/cryptoKeys/k", "role": "roles/a", "member": "user:a@b.c"}),
				backupPlanType: change(t, backupPlanInputs(), "name", "persia-1234567"),
			}[c.token]
			g := newGoogle(t)
			require.Equal(t, plugin.DiffNone, g.diff(c.token, inputs, inputs).Changes, "without a change")
			diff := g.diff(c.token, inputs, change(t, inputs, c.path, c.value))
			got := inPlace
			switch {
			case diff.Changes == plugin.DiffNone:
				got = same
			case diff.Replace():
				got = replace
			}
			assert.Equal(t, c.want, got, "%v", diff.DetailedDiff)
		})
	}
}

func TestNamedResourcesAreDeletedBeforeTheyAreReplaced(t *testing.T) {
	g := newGoogle(t)
	pool := g.diff(nodePoolType, gpuPool(), change(t, gpuPool(), "nodeConfig.spot", true))
	assert.True(t, pool.DeleteBeforeReplace)

	member := properties(values{"project": "my-project", "role": "roles/editor", "member": "user:a@b.c"})
	grant := g.diff(iamMemberType, member, change(t, member, "role", "roles/viewer"))
	assert.False(t, grant.DeleteBeforeReplace, "a grant is given before the other is taken")
}

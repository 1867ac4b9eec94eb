package gke_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestEncryptedSecrets checks that the program leaves out the encryption that GKE answers in other
// words, and no other: an edit of it must reach the cluster.
func TestEncryptedSecrets(t *testing.T) {
	encryption := func(state, key string) settings { return settings{"state": state, "keyName": key} }
	for name, c := range map[string]struct {
		key string
		// had is the encryption of the cluster in the state. It is nil before the first update.
		had settings
		// identifier is the one of the cluster in the state, if this update replaces that cluster.
		identifier string
		asks       any
		ignored    int
	}{
		"at first":                   {aKey, nil, "", encryption("ENCRYPTED", aKey), 3},
		"from then on":               {aKey, encryption("ALL_OBJECTS_ENCRYPTION_ENABLED", aKey), "", nil, 2},
		"added later":                {aKey, encryption("DECRYPTED", ""), "", encryption("ENCRYPTED", aKey), 2},
		"with another key":           {aKey, encryption("ALL_OBJECTS_ENCRYPTION_ENABLED", aKey+"-old"), "", encryption("ENCRYPTED", aKey), 2},
		"as GKE answered until 1.35": {aKey, encryption("ENCRYPTED", aKey), "", encryption("ENCRYPTED", aKey), 2},
		"none":                       {"", nil, "", settings{"state": "DECRYPTED"}, 2},
		"in a cluster that replaces it": {aKey, encryption("ALL_OBJECTS_ENCRYPTION_ENABLED", aKey),
			"projects/my-project/locations/us-central1/clusters/persia-prod?controlPlane=10.9.0.0/28", encryption("ENCRYPTED", aKey), 3},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "prod")
			programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
				set(cluster.(map[string]any), "encryption.secrets", c.key)
			})
			there := testkit.Cloud{}
			if c.had != nil {
				there["outputs"] = settings{"clusterName": "persia-prod"}
				there["resources"] = settings{"urn:pulumi:stack::persia::persia:gke:Cluster$gcp:container/cluster:Cluster::persia-prod": settings{
					"type": "gcp:container/cluster:Cluster", "outputs": settings{"databaseEncryption": c.had}}}
			}
			if c.identifier != "" {
				there["resources"]["urn:pulumi:stack::persia::persia:gke:Cluster$pulumi:providers:kubernetes::persia-prod"] = settings{
					"outputs": settings{"clusterIdentifier": c.identifier}}
			}
			recorder, err := programtest.Deploy(t, configuration, there)
			require.NoError(t, err)
			registered := recorder.One(t, testkit.Cluster, "persia-prod")
			assert.Equal(t, c.asks, testkit.Found(t, registered, "databaseEncryption"))
			assert.Len(t, registered.RegisterRPC.GetIgnoreChanges(), c.ignored, "the provider validates the state's value of an ignored property")
		})
	}
}

// TestEveryPoolTakesWhatGKESets holds that no plan removes what GKE sets on pools
// by itself, which the provider would ask for with an update that GKE refuses.
func TestEveryPoolTakesWhatGKESets(t *testing.T) {
	for _, name := range []string{"dev", "prod"} {
		for _, pool := range programtest.DeployStack(t, name).All(t, testkit.NodePool) {
			ignored := pool.RegisterRPC.GetIgnoreChanges()
			assert.Contains(t, ignored, "nodeConfig.kubeletConfig", pool.URN)
			assert.Contains(t, ignored, "nodeConfig.resourceLabels", pool.URN)
			assert.Equal(t, testkit.At(t, pool, "name"), testkit.At(t, pool, `nodeConfig.labels["persia.com/node-pool"]`),
				"without a label of the program's own, the last of the user's cannot go")
		}
	}
}

func TestL4SubsettingIsNamed(t *testing.T) {
	assert.Equal(t, true, testkit.At(t, programtest.DeployStack(t, "prod").One(t, testkit.Cluster, "persia-prod"), "enableL4IlbSubsetting"),
		"from 1.36 on GKE turns it on, and unsaid it replaces the cluster")
}

// TestHardened checks the settings that the CIS benchmark for GKE requires of a cluster and that
// GKE does not set by itself (docs/reference/security.md).
func TestHardened(t *testing.T) {
	for _, name := range []string{"dev", "prod"} {
		cluster := programtest.DeployStack(t, name).One(t, testkit.Cluster, "persia-"+name)
		for path, want := range map[string]any{
			"masterAuthorizedNetworksConfig.gcpPublicCidrsAccessEnabled": false,
			"serviceExternalIpsConfig.enabled":                           false,
			"privateClusterConfig.enablePrivateNodes":                    true,
			"enableShieldedNodes":                                        true,
			"binaryAuthorization.evaluationMode":                         "PROJECT_SINGLETON_POLICY_ENFORCE",
			"workloadIdentityConfig.workloadPool":                        "my-project.svc.id.goog",
			"datapathProvider":                                           "ADVANCED_DATAPATH",
			"securityPostureConfig.mode":                                 "BASIC",
		} {
			assert.Equal(t, want, testkit.At(t, cluster, path), "%s: %s", name, path)
		}
	}
}

// TestProviderGoesByDefaultCredentials holds that Pulumi enters the cluster as it
// reaches Google Cloud, with no login of gcloud.
func TestProviderGoesByDefaultCredentials(t *testing.T) {
	provider := programtest.DeployStack(t, "prod").One(t, "pulumi:providers:kubernetes", "persia-prod")
	assert.Contains(t, provider.Inputs["kubeconfig"].SecretValue().Element.StringValue(), "--use_application_default_credentials")
}

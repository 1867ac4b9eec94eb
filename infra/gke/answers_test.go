package gke_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

const prodCluster = "projects/my-project/locations/us-central1/clusters/persia-prod"

// TestAnsweredOtherwise checks that the program leaves out a block that GKE answers in other
// words, and no other: an edit of it must reach the cluster.
func TestAnsweredOtherwise(t *testing.T) {
	encrypted := settings{"encryption": settings{"secrets": aKey}}
	encryption := func(state, key string) settings {
		return settings{"databaseEncryptions": []any{settings{"state": state, "keyName": key}}}
	}
	for name, c := range map[string]struct {
		edits settings
		// cluster describes the cluster in GKE. It is nil before the first update.
		cluster settings
		left    string
	}{
		"encrypted Secrets at first":          {encrypted, nil, ""},
		"encrypted Secrets from then on":      {encrypted, encryption("ALL_OBJECTS_ENCRYPTION_ENABLED", aKey), "databaseEncryption"},
		"Secrets to be encrypted":             {encrypted, encryption("DECRYPTED", ""), ""},
		"Secrets to be encrypted by another":  {encrypted, encryption("ALL_OBJECTS_ENCRYPTION_ENABLED", aKey+"-old"), ""},
		"encrypted Secrets, as GKE once said": {encrypted, encryption("ENCRYPTED", aKey), ""},
		"kube-dns at first":                   {settings{"dns": "KUBE_DNS"}, nil, "dnsConfig"},
		"kube-dns from then on":               {settings{"dns": "KUBE_DNS"}, settings{"dnsConfigs": []any{}}, "dnsConfig"},
		"kube-dns with an empty message":      {settings{"dns": "KUBE_DNS"}, settings{"dnsConfigs": []any{settings{"clusterDns": ""}}}, ""},
		"kube-dns after Cloud DNS":            {settings{"dns": "KUBE_DNS"}, settings{"dnsConfigs": []any{settings{"clusterDns": "CLOUD_DNS"}}}, ""},
		"legacy datapath at first":            {settings{"dataplaneV2": false}, nil, ""},
		"legacy datapath that GKE leaves out": {settings{"dataplaneV2": false}, settings{"datapathProvider": ""}, "datapathProvider"},
		"legacy datapath after Dataplane V2":  {settings{"dataplaneV2": false}, settings{"datapathProvider": "ADVANCED_DATAPATH"}, ""},
		"nothing at stake":                    {settings{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "prod")
			programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
				for setting, value := range c.edits {
					set(cluster.(map[string]any), setting, value)
				}
			})
			there := testkit.Cloud{}
			if c.cluster != nil {
				there[prodCluster] = c.cluster
			}
			recorder, err := programtest.Deploy(t, configuration, there)
			require.NoError(t, err)
			registered := recorder.One(t, testkit.Cluster, "persia-prod")
			for _, block := range []string{"databaseEncryption", "dnsConfig", "datapathProvider"} {
				_, given := registered.Inputs[resource.PropertyKey(block)]
				assert.Equal(t, block != c.left, given, block)
			}
			ignored := registered.RegisterRPC.GetIgnoreChanges()
			assert.Subset(t, ignored, []string{"nodeConfig", "initialNodeCount"})
			if c.cluster != nil {
				assert.Len(t, ignored, 2, "the provider validates the state's value of an ignored property")
			}
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

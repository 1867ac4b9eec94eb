package gcp

import (
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	fakeextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"persia/sandbox/gcp/google"
)

const (
	bucketType     = "gcp:storage/bucket:Bucket"
	instanceType   = "gcp:filestore/instance:Instance"
	diskType       = "gcp:compute/disk:Disk"
	regionDiskType = "gcp:compute/regionDisk:RegionDisk"
	clusterType    = "gcp:container/cluster:Cluster"
	nodePoolType   = "gcp:container/nodePool:NodePool"
	networkType    = "gcp:compute/network:Network"
	subnetworkType = "gcp:compute/subnetwork:Subnetwork"
	accountType    = "gcp:serviceaccount/account:Account"
	iamMemberType  = "gcp:projects/iAMMember:IAMMember"
	keyGrantType   = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
	natType        = "gcp:compute/routerNat:RouterNat"
	backupPlanType = "gcp:gkebackup/backupPlan:BackupPlan"
)

type values = map[string]any

// unknownValue is a value that a preview does not know.
var unknownValue = resource.MakeComputed(resource.NewStringProperty(""))

// simulated is a provider whose control plane is client-go's fake, with the calls of
// the engine on single resources.
type simulated struct {
	*testing.T
	*Provider
	gke        gke
	client     *fake.Clientset
	extensions *fakeextensions.Clientset
	states     map[string]held
}

// held is what a stack holds of a resource.
type held struct {
	id              resource.ID
	inputs, outputs resource.PropertyMap
}

func newGoogle(t *testing.T) simulated {
	client, extensions := fake.NewClientset(), newExtensions()
	g := simulated{T: t, client: client, extensions: extensions, states: map[string]held{}, gke: gke{
		config: &rest.Config{
			Host:            "https://127.0.0.1:6443",
			TLSClientConfig: rest.TLSClientConfig{CAData: []byte("certificate")},
		},
		client:     func() (kubernetes.Interface, error) { return client, nil },
		extensions: func() (clientset.Interface, error) { return extensions, nil },
	}}
	g.next(filepath.Join(t.TempDir(), "storage"))
	return g
}

// next is the provider of another command.
func (g *simulated) next(dir string) {
	provider, err := newProvider("7.38.0", g.gke, google.New(dir, google.Settings{}))
	require.NoError(g, err)
	g.Provider = provider
}

func urn(token string) resource.URN {
	return resource.NewURN("dev", "persia", "", tokens.Type(token), "main")
}

func properties(inputs values) resource.PropertyMap { return resource.NewPropertyMapFromMap(inputs) }

// key tells resources apart that a test holds.
func key(token string, inputs resource.PropertyMap) string {
	return token + expand(" ${name} ${accountId} ${role} ${member}", inputs)
}

func (g simulated) check(token string, inputs resource.PropertyMap) resource.PropertyMap {
	g.Helper()
	resp, err := g.Check(g.Context(), plugin.CheckRequest{URN: urn(token), News: inputs})
	require.NoError(g, err)
	require.Empty(g, resp.Failures)
	return resp.Properties
}

// tryCreate makes a resource, in a cluster and behind a router that are there.
func (g simulated) tryCreate(token string, inputs resource.PropertyMap) (plugin.CreateResponse, error) {
	g.Helper()
	parents := map[string]struct{ kind, name string }{
		nodePoolType: {clusterKind, "projects/${project}/locations/${location}/clusters/${cluster}"},
		natType:      {"compute.router", "projects/${project}/regions/${region}/routers/${router}"},
	}
	if parent, below := parents[token]; below {
		name := expand(parent.name, inputs)
		if body, err := g.cloud.Get(parent.kind, name); err == nil && body == nil {
			require.NoError(g, g.cloud.Create(parent.kind, name, google.Body{}))
		}
	}
	resp, err := g.Create(g.Context(), plugin.CreateRequest{URN: urn(token), Properties: inputs})
	if err == nil {
		g.states[key(token, inputs)] = held{resp.ID, inputs, resp.Properties}
	}
	return resp, err
}

func (g simulated) create(token string, inputs resource.PropertyMap) plugin.CreateResponse {
	g.Helper()
	resp, err := g.tryCreate(token, inputs)
	require.NoError(g, err)
	return resp
}

func (g simulated) update(token string, old, new resource.PropertyMap) plugin.UpdateResponse {
	g.Helper()
	state := g.states[key(token, old)]
	resp, err := g.Update(g.Context(), plugin.UpdateRequest{
		URN: urn(token), ID: state.id, OldInputs: state.inputs, OldOutputs: state.outputs, NewInputs: new, IgnoreChanges: answered[token],
	})
	require.NoError(g, err)
	g.states[key(token, new)] = held{state.id, new, resp.Properties}
	return resp
}

func (g simulated) read(token string, inputs resource.PropertyMap) plugin.ReadResponse {
	g.Helper()
	state := g.states[key(token, inputs)]
	resp, err := g.Read(g.Context(), plugin.ReadRequest{URN: urn(token), ID: state.id, Inputs: state.inputs, State: state.outputs})
	require.NoError(g, err)
	g.states[key(token, inputs)] = held{state.id, resp.Inputs, resp.Outputs}
	return resp
}

func (g simulated) delete(token string, inputs resource.PropertyMap) error {
	state := g.states[key(token, inputs)]
	_, err := g.Delete(g.Context(), plugin.DeleteRequest{URN: urn(token), ID: state.id, Outputs: state.outputs})
	return err
}

// answered is what GKE sets by itself and the provider does not compute, which the
// program ignores.
var answered = map[string][]string{
	nodePoolType: {"nodeConfig.kubeletConfig", "nodeConfig.resourceLabels"},
}

// diff plans an edit of a resource that is there.
func (g simulated) diff(token string, old, new resource.PropertyMap) plugin.DiffResponse {
	g.Helper()
	state, exists := g.states[key(token, old)]
	if !exists {
		g.create(token, g.check(token, old))
		state = g.states[key(token, old)]
	}
	resp, err := g.Diff(g.Context(), plugin.DiffRequest{
		URN: urn(token), ID: state.id, OldInputs: state.inputs, OldOutputs: state.outputs, NewInputs: new, IgnoreChanges: answered[token],
	})
	require.NoError(g, err)
	return resp
}

func subnetworkInputs(cidr string) resource.PropertyMap {
	return properties(values{
		"project":     "my-project",
		"region":      "us-central1",
		"name":        "persia",
		"network":     "projects/my-project/global/networks/persia",
		"ipCidrRange": cidr,
	})
}

// backupPlanInputs are as the program gives them, without a name.
func backupPlanInputs() resource.PropertyMap {
	return properties(values{
		"project":         "my-project",
		"location":        "us-central1",
		"cluster":         "projects/my-project/locations/us-central1/clusters/persia",
		"backupSchedule":  values{"cronSchedule": "0 4 * * *"},
		"retentionPolicy": values{"backupRetainDays": 7},
	})
}

// change is a copy of inputs with another value at a path, or none if it is nil.
func change(t *testing.T, inputs resource.PropertyMap, path string, value any) resource.PropertyMap {
	t.Helper()
	at, err := resource.ParsePropertyPath(path)
	require.NoError(t, err)
	changed := resource.NewObjectProperty(properties(inputs.Mappable()))
	if value == nil {
		require.True(t, at.Delete(changed), path)
	} else {
		_, ok := at.Add(changed, resource.NewPropertyValue(value))
		require.True(t, ok, path)
	}
	return changed.ObjectValue()
}

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
				accountType:    properties(values{"project": "my-project", "accountId": "nodes"}),
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

func TestUnknownResourceIsRefusedByName(t *testing.T) {
	const token = "gcp:sql/databaseInstance:DatabaseInstance"
	g, ctx := newGoogle(t), t.Context()
	errs := map[string]error{}
	_, errs["check"] = g.Check(ctx, plugin.CheckRequest{URN: urn(token)})
	_, errs["diff"] = g.Diff(ctx, plugin.DiffRequest{URN: urn(token)})
	_, errs["create"] = g.Create(ctx, plugin.CreateRequest{URN: urn(token)})
	_, errs["update"] = g.Update(ctx, plugin.UpdateRequest{URN: urn(token)})
	_, errs["read"] = g.Read(ctx, plugin.ReadRequest{URN: urn(token)})
	_, errs["delete"] = g.Delete(ctx, plugin.DeleteRequest{URN: urn(token)})
	for call, err := range errs {
		assert.ErrorContains(t, err, "no resource "+token, call)
	}
}

func TestFunctions(t *testing.T) {
	g := newGoogle(t)
	invoke := func(token string, args values) (plugin.InvokeResponse, error) {
		return g.Invoke(t.Context(), plugin.InvokeRequest{Tok: tokens.ModuleMember(token), Args: properties(args)})
	}

	resp, err := invoke("gcp:organizations/getProject:getProject", values{"projectId": "my-project"})
	require.NoError(t, err)
	assert.Equal(t, google.ProjectNumber, text(resp.Properties, "number"))
	assert.Equal(t, "my-project", text(resp.Properties, "projectId"))

	_, err = invoke("gcp:organizations/getProject:getProject", values{})
	assert.ErrorContains(t, err, "projectId is required")

	_, err = invoke("gcp:compute/getZones:getZones", values{})
	assert.ErrorContains(t, err, "no function gcp:compute/getZones:getZones")
}

func TestIdentifiersAndOutputs(t *testing.T) {
	for _, c := range []struct {
		token, id string
		inputs    values
		outputs   map[string]string
	}{
		{
			token:  networkType,
			inputs: values{"project": "my-project", "name": "persia"},
			id:     "projects/my-project/global/networks/persia",
			outputs: map[string]string{
				"selfLink": "https://www.googleapis.com/compute/v1/projects/my-project/global/networks/persia",
			},
		},
		{
			token:  subnetworkType,
			inputs: values{"project": "my-project", "region": "us-central1", "name": "persia", "network": "persia", "ipCidrRange": "10.0.0.0/20"},
			id:     "projects/my-project/regions/us-central1/subnetworks/persia",
		},
		{
			token:  "gcp:compute/router:Router",
			inputs: values{"project": "my-project", "region": "us-central1", "name": "persia", "network": "persia"},
			id:     "projects/my-project/regions/us-central1/routers/persia",
		},
		{
			token:  "gcp:compute/routerNat:RouterNat",
			inputs: values{"project": "my-project", "region": "us-central1", "router": "persia", "name": "nat", "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"},
			id:     "my-project/us-central1/persia/nat",
		},
		{
			token:  accountType,
			inputs: values{"project": "my-project", "accountId": "nodes"},
			id:     "projects/my-project/serviceAccounts/nodes@my-project.iam.gserviceaccount.com",
			outputs: map[string]string{
				"email":  "nodes@my-project.iam.gserviceaccount.com",
				"member": "serviceAccount:nodes@my-project.iam.gserviceaccount.com",
				"name":   "projects/my-project/serviceAccounts/nodes@my-project.iam.gserviceaccount.com",
			},
		},
		{
			token:  iamMemberType,
			inputs: values{"project": "my-project", "role": "roles/editor", "member": "user:a@b.c"},
			id:     "my-project/roles/editor/user:a@b.c",
		},
		{
			token:  "gcp:storage/bucketIAMMember:BucketIAMMember",
			inputs: values{"bucket": "checkpoints", "role": "roles/storage.objectUser", "member": "user:a@b.c"},
			id:     "b/checkpoints/roles/storage.objectUser/user:a@b.c",
		},
		{
			token:  keyGrantType,
			inputs: values{"cryptoKeyId": "projects/p/locations/l/keyRings/r/cryptoKeys/k", "role": "roles/a", "member": "user:a@b.c"},
			id:     "projects/p/locations/l/keyRings/r/cryptoKeys/k/roles/a/user:a@b.c",
		},
		{
			token:  backupPlanType,
			inputs: values{"project": "my-project", "location": "us-central1", "name": "persia-1234567", "cluster": "c"},
			id:     "projects/my-project/locations/us-central1/backupPlans/persia-1234567",
		},
	} {
		t.Run(c.token, func(t *testing.T) {
			g := newGoogle(t)
			inputs := properties(c.inputs)
			created := g.create(c.token, inputs)
			assert.EqualValues(t, c.id, created.ID)
			for name, want := range c.outputs {
				assert.Equal(t, want, text(created.Properties, name))
			}
			for name, want := range c.inputs {
				if _, computed := c.outputs[name]; !computed && name != "network" {
					assert.Equal(t, want, text(created.Properties, name), name)
				}
			}
			assert.Equal(t, created.Properties, g.read(c.token, inputs).Outputs)
			assert.NoError(t, g.delete(c.token, inputs))
			assert.Empty(t, g.client.Actions(), "nothing in the control plane stands for it")
		})
	}
}

func TestWithoutAControlPlane(t *testing.T) {
	g := newGoogle(t)
	g.gke = newGKE(nil, nil)
	g.next(t.TempDir())
	for token, inputs := range map[string]resource.PropertyMap{clusterType: clusterInputs(), nodePoolType: gpuPool()} {
		_, err := g.Create(t.Context(), plugin.CreateRequest{URN: urn(token), Properties: inputs, Preview: true})
		assert.NoError(t, err, "%s previews", token)
		_, err = g.tryCreate(token, inputs)
		assert.ErrorContains(t, err, errNotRunning.Error(), "%s is not created", token)
	}
}

func TestPluginInfo(t *testing.T) {
	info, err := newGoogle(t).GetPluginInfo(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "7.38.0", info.Version.String())
}

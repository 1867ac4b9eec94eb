package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/google"
	"persia/sandbox/gcp/property"
)

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
	assert.Equal(t, google.ProjectNumber, property.Text(resp.Properties, "number"))
	assert.Equal(t, "my-project", property.Text(resp.Properties, "projectId"))

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
			token:  routerType,
			inputs: values{"project": "my-project", "region": "us-central1", "name": "persia", "network": "persia"},
			id:     "projects/my-project/regions/us-central1/routers/persia",
		},
		{
			token:  natType,
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
				assert.Equal(t, want, property.Text(created.Properties, name))
			}
			for name, want := range c.inputs {
				if _, computed := c.outputs[name]; !computed && name != "network" {
					assert.Equal(t, want, property.Text(created.Properties, name), name)
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
	g.gke = newGKE(nil, nil, "")
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

package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"

	"persia/sandbox/gcp/google"
)

func TestWhatIsNotSimulatedIsRefusedByName(t *testing.T) {
	const token = "gcp:sql/databaseInstance:DatabaseInstance"
	g, ctx := newGoogle(t), t.Context()
	_, err := g.Check(ctx, plugin.CheckRequest{URN: urn(token)})
	assert.ErrorContains(t, err, "no resource "+token)
	_, err = g.Read(ctx, plugin.ReadRequest{URN: urn(token)})
	assert.ErrorContains(t, err, "no resource "+token)

	invoke := func(function string, args values) (values, error) {
		resp, err := g.Invoke(ctx, plugin.InvokeRequest{Tok: tokens.ModuleMember(function), Args: properties(args)})
		return resp.Properties.Mappable(), err
	}
	project, err := invoke("gcp:organizations/getProject:getProject", values{"projectId": "my-project"})
	assert.NoError(t, err)
	assert.Equal(t, google.ProjectNumber, project["number"])
	_, err = invoke("gcp:organizations/getProject:getProject", nil)
	assert.ErrorContains(t, err, "projectId is required")
	_, err = invoke("gcp:compute/getDisk:getDisk", values{"project": "p", "zone": "us-central1-a", "name": "d"})
	assert.ErrorContains(t, err, "projects/p/zones/us-central1-a/disks/d not found")
	_, err = invoke("gcp:compute/getZones:getZones", nil)
	assert.ErrorContains(t, err, "no function gcp:compute/getZones:getZones")
}

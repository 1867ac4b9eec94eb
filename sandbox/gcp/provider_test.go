package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/google"
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
	assert.Equal(t, google.ProjectNumber, textOf(resp.Properties, "number"))
	assert.Equal(t, "my-project", textOf(resp.Properties, "projectId"))

	_, err = invoke("gcp:organizations/getProject:getProject", values{})
	assert.ErrorContains(t, err, "projectId is required")

	_, err = invoke("gcp:compute/getZones:getZones", values{})
	assert.ErrorContains(t, err, "no function gcp:compute/getZones:getZones")
}

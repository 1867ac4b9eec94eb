package gcp

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
	"persia/sandbox/gcp/google"
)

// TestInputsAreTheSchemas: names and values that pulumi-gcp 7.38 lacks are refused in its words, at any depth.
func TestInputsAreTheSchemas(t *testing.T) {
	e := newStack(t, "../..")
	e.up(editable(t))
	inputs := map[tokens.Type]values{}
	for urn, has := range e.state {
		inputs[urn.Type()] = has.inputs.Mappable()
	}
	type edits = testkit.Edits
	for _, c := range []struct {
		name  string
		token tokens.Type
		edits testkit.Edits
		want  string
	}{
		{"as it is", nodePoolType, nil, ""},
		{"a name inside", nodePoolType, edits{"nodeConfig.machinetype": "n2-standard-8"}, "nodeConfig.machinetype is not a property in"},
		{"a name in a list", nodePoolType, edits{"nodeConfig.taints": []any{values{"key": "a", "value": "b", "efect": "NO_SCHEDULE"}}}, "nodeConfig.taints.efect is not a property in"},
		{"an enumeration", clusterType, edits{"databaseEncryption.state": "ALL_OBJECTS_ENCRYPTION_ENABLED"},
			`expected database_encryption.0.state to be one of ["ENCRYPTED" "DECRYPTED"], got ALL_OBJECTS_ENCRYPTION_ENABLED`},
		{"an enumeration in a list", clusterType, edits{"loggingConfig.enableComponents": []any{"SYSTEM_COMPONENTS", "KUBELET"}},
			`expected logging_config.0.enable_components.1 to be one of ["SYSTEM_COMPONENTS" "APISERVER" "CONTROLLER_MANAGER" "SCHEDULER" "WORKLOADS"], got KUBELET`},
		{"a conflict", clusterType, edits{"binaryAuthorization.enabled": true},
			`Conflicting configuration arguments. "binary_authorization.0.enabled": conflicts with binary_authorization.0.evaluation_mode`},
		{"none of one", clusterType, edits{"maintenancePolicy.dailyMaintenanceWindow": nil}, `Invalid combination of arguments`},
		{"a number that is too small", nodePoolType, edits{"nodeConfig.diskSizeGb": 9}, "expected node_config.0.disk_size_gb to be at least (10), got 9"},
		{"a time of day", clusterType, edits{"maintenancePolicy.dailyMaintenanceWindow.startTime": "3am"}, "invalid value for maintenance_policy.0.daily_maintenance_window.0.start_time"},
		{"a range of addresses", "gcp:compute/subnetwork:Subnetwork", edits{"ipCidrRange": "10.0.0.0"}, `expected "ip_cidr_range" to be a valid CIDR Value, got 10.0.0.0`},
		{"a time", clusterType, edits{"maintenancePolicy.maintenanceExclusions": []any{values{"exclusionName": "release", "startTime": "soon", "endTime": "2027-01-03T00:00:00Z"}}}, `to be a valid RFC3339 date, got "soon"`},
		{"a bucket like Google's", bucketType, edits{"location": "EU", "name": "my-g00gle-data"}, `cannot contain "google"`},
		{"a bucket of two letters", bucketType, edits{"location": "EU", "name": "my"}, "must contain 3-63 characters"},
		{"a name of a cluster", clusterType, edits{"name": "Persia"}, "invalid value for name (it does not match ^[a-z0-9-]+$)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			edited := google.Clone(inputs[c.token])
			c.edits.In(t, edited)
			news := resource.NewPropertyMapFromMap(edited)
			checked := testkit.Must(e.Check(t.Context(), plugin.CheckRequest{URN: urnOf(string(c.token), "main"), News: news}))(t)
			if c.want == "" {
				assert.Empty(t, checked.Failures)
				return
			}
			require.NotEmpty(t, checked.Failures)
			assert.Contains(t, checked.Failures[0].Reason, c.want)
		})
	}
}

// TestAnswersThatNoUpdateTakesAway: what GKE answers by itself and the provider does not compute is a
// change of each plan, and GKE refuses an update that names no field. The program ignores these fields.
func TestAnswersThatNoUpdateTakesAway(t *testing.T) {
	e := newStack(t, "../..")
	e.up(poolStackOf(t))
	urn := urnOf(nodePoolType, "persia-workers")
	has := e.state[urn]
	_, err := e.Update(t.Context(), plugin.UpdateRequest{URN: urn, ID: has.id, OldInputs: has.inputs, OldOutputs: has.outputs, NewInputs: has.inputs})
	assert.ErrorContains(t, err, "Must specify a field to update., badRequest")
}

func TestWhatIsNotSimulatedIsRefusedByName(t *testing.T) {
	const token = "gcp:sql/databaseInstance:DatabaseInstance"
	e, ctx := newStack(t, "../.."), t.Context()
	_, err := e.Check(ctx, plugin.CheckRequest{URN: urnOf(token, "main")})
	assert.ErrorContains(t, err, "no resource "+token)
	_, err = e.Read(ctx, plugin.ReadRequest{URN: urnOf(token, "main")})
	assert.ErrorContains(t, err, "no resource "+token)

	invoke := func(function string, args values) (values, error) {
		resp, err := e.Invoke(ctx, plugin.InvokeRequest{Tok: tokens.ModuleMember(function), Args: resource.NewPropertyMapFromMap(args)})
		return resp.Properties.Mappable(), err
	}
	project, err := invoke("gcp:organizations/getProject:getProject", values{"projectId": "my-project"})
	assert.NoError(t, err)
	assert.Equal(t, google.ProjectNumber, project["number"])
	_, err = invoke("gcp:compute/getDisk:getDisk", values{"project": "p", "zone": "us-central1-a", "name": "d"})
	assert.ErrorContains(t, err, "projects/p/zones/us-central1-a/disks/d not found")
	_, err = invoke("gcp:compute/getZones:getZones", nil)
	assert.ErrorContains(t, err, "no function gcp:compute/getZones:getZones")
}

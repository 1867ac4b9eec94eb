package gcp

import (
	"maps"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// with returns a copy of inputs with others laid over. Nil removes an input.
func with(inputs, over values) values {
	result := maps.Clone(inputs)
	for name, value := range over {
		below, isObject := value.(values)
		old, wasObject := result[name].(values)
		switch {
		case value == nil:
			delete(result, name)
		case isObject && wasObject:
			result[name] = with(old, below)
		default:
			result[name] = value
		}
	}
	return result
}

// programs are resources as the program describes them.
var programs = map[string]values{
	networkType: {"project": "p", "name": "persia", "autoCreateSubnetworks": false},
	subnetworkType: {
		"project": "p", "region": "us-central1", "name": "persia", "network": "projects/p/global/networks/persia", "ipCidrRange": "10.0.0.0/20",
	},
	clusterType: {
		"project": "p", "location": "us-central1", "name": "persia",
		"nodeLocations": []any{"us-central1-a"}, "deletionProtection": false, "removeDefaultNodePool": true, "initialNodeCount": 1,
		"network": "projects/p/global/networks/persia", "subnetwork": "projects/p/regions/us-central1/subnetworks/persia",
		"ipAllocationPolicy":  values{"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"},
		"binaryAuthorization": values{"evaluationMode": "DISABLED"},
		"databaseEncryption":  values{"state": "DECRYPTED"},
		"maintenancePolicy":   values{"dailyMaintenanceWindow": values{"startTime": "03:00"}},
	},
	nodePoolType: {
		"project": "p", "location": "us-central1", "cluster": "persia", "name": "training", "nodeLocations": []any{"us-central1-a"}, "nodeCount": 2,
		"nodeConfig": values{
			"machineType": "n2-standard-8", "imageType": "COS_CONTAINERD", "diskType": "pd-balanced", "diskSizeGb": 100,
			"gvnic": values{"enabled": true}, "serviceAccount": "nodes@p.iam.gserviceaccount.com",
			"oauthScopes": []any{"https://www.googleapis.com/auth/cloud-platform"},
		},
		"management": values{"autoRepair": true, "autoUpgrade": true},
	},
	diskType: {"project": "p", "zone": "us-central1-a", "name": "checkpoints", "type": "pd-ssd", "size": 500, "labels": values{"stack": "dev"},
		"diskEncryptionKey": values{"kmsKeySelfLink": "projects/p/locations/us/keyRings/r/cryptoKeys/k"}},
	regionDiskType: {"project": "p", "region": "us-central1", "replicaZones": []any{"us-central1-a", "us-central1-b"}, "name": "regional",
		"type": "pd-ssd", "size": 500, "diskEncryptionKey": values{"kmsKeyName": "projects/p/locations/us/keyRings/r/cryptoKeys/k"}},
	instanceType: {"project": "p", "location": "us-central1-a", "name": "share", "tier": "BASIC_SSD", "fileShares": values{"name": "vol1", "capacityGb": 2560},
		"networks": []any{values{"network": "projects/p/global/networks/persia", "modes": []any{"MODE_IPV4"}}}, "labels": values{"stack": "dev"}},
	bucketType: {"project": "p", "name": "checkpoints", "location": "us-central1", "uniformBucketLevelAccess": true, "publicAccessPrevention": "enforced",
		"versioning": values{"enabled": true}, "softDeletePolicy": values{"retentionDurationSeconds": 0}, "labels": values{"stack": "dev"}},
	accountType:   {"project": "p", "accountId": "persia-nodes", "displayName": "Nodes"},
	iamMemberType: {"project": "p", "role": "roles/logging.logWriter", "member": "serviceAccount:persia-nodes@p.iam.gserviceaccount.com"},
}

// TestInputsAreTheSchemas: a name, a type or a value that pulumi-gcp 7.38 does not have is
// refused in its words, however deep it is.
func TestInputsAreTheSchemas(t *testing.T) {
	g := newGoogle(t)
	node := func(settings values) values { return values{"nodeConfig": settings} }
	for _, c := range []struct {
		name  string
		token string
		over  values
		want  string
	}{
		{"as it is", nodePoolType, nil, ""},
		{"a name inside", nodePoolType, node(values{"machinetype": "n2-standard-8"}), "nodeConfig.machinetype is not a property in"},
		{"a number as a text", nodePoolType, values{"nodeCount": "2"}, "nodeCount is not a TypeInt"},
		{"half a node", nodePoolType, values{"nodeCount": 2.5}, "nodeCount is not a TypeInt"},
		{"a switch as a text", nodePoolType, node(values{"gvnic": values{"enabled": "true"}}), "nodeConfig.gvnic.enabled is not a TypeBool"},
		{"one for many", nodePoolType, values{"nodeLocations": "us-central1-a"}, "nodeLocations is not a TypeSet"},
		{"many for one", nodePoolType, values{"management": []any{values{"autoRepair": true}}}, "management is not a TypeList"},
		{"an element's", nodePoolType, node(values{"taints": []any{values{"key": 1, "value": "a", "effect": "NO_SCHEDULE"}}}), "nodeConfig.taints[0].key is not a TypeString"},
		{"an enumeration", clusterType, values{"databaseEncryption": values{"state": "ALL_OBJECTS_ENCRYPTION_ENABLED"}},
			`expected database_encryption.0.state to be one of ["ENCRYPTED" "DECRYPTED"], got ALL_OBJECTS_ENCRYPTION_ENABLED`},
		{"an enumeration in a list", clusterType, values{"loggingConfig": values{"enableComponents": []any{"SYSTEM_COMPONENTS", "KUBELET"}}},
			`expected logging_config.0.enable_components.1 to be one of ["SYSTEM_COMPONENTS" "APISERVER" "CONTROLLER_MANAGER" "SCHEDULER" "WORKLOADS"], got KUBELET`},
		{"a conflict", clusterType, values{"binaryAuthorization": values{"enabled": true}},
			`Conflicting configuration arguments. "binary_authorization.0.enabled": conflicts with binary_authorization.0.evaluation_mode`},
		{"both of one", clusterType, values{"maintenancePolicy": values{"recurringWindow": values{"startTime": "2026-12-01T00:00:00Z", "endTime": "2026-12-01T04:00:00Z", "recurrence": "FREQ=DAILY"}}},
			`Invalid combination of arguments`},
		{"a number that is too small", nodePoolType, node(values{"diskSizeGb": 9}), "expected node_config.0.disk_size_gb to be at least (10), got 9"},
		{"a number outside of a range", bucketType, values{"retentionPolicy": values{"retentionPeriod": 0}},
			"expected retention_policy.0.retention_period to be in the range (1 - 2147483647), got 0"},
		{"a pattern", networkType, values{"name": "Persia"}, `"name" ("Persia") doesn't match regexp "^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"`},
		{"a range of addresses", subnetworkType, values{"ipCidrRange": "10.0.0.0"}, `"ip_cidr_range" is not a valid IP CIDR range: invalid CIDR address: 10.0.0.0`},
		{"a time of day", clusterType, values{"maintenancePolicy": values{"dailyMaintenanceWindow": values{"startTime": "3am"}}},
			`"maintenance_policy.0.daily_maintenance_window.0.start_time" ("3am") must be in the format HH:mm (RFC3339)`},
		{"a time", clusterType, values{"maintenancePolicy": values{"maintenanceExclusions": []any{values{"exclusionName": "release", "startTime": "soon", "endTime": "2027-01-03T00:00:00Z"}}}},
			`parsing time "soon" as "2006-01-02T15:04:05Z07:00"`},
		{"a member", iamMemberType, values{"member": "persia-nodes@p.iam.gserviceaccount.com"}, "invalid value for member (IAM members must have one of the values outlined here"},
		{"a name of a cluster", clusterType, values{"name": "Persia"}, `"name" can only contain lowercase letters, numbers and hyphens`},
	} {
		t.Run(c.name, func(t *testing.T) {
			checked, err := g.Check(t.Context(), plugin.CheckRequest{URN: urn(c.token), News: properties(with(programs[c.token], c.over))})
			require.NoError(t, err)
			var reasons []string
			for _, failure := range checked.Failures {
				reasons = append(reasons, failure.Reason)
			}
			if c.want == "" {
				assert.Empty(t, reasons)
				return
			}
			require.NotEmpty(t, reasons)
			assert.Contains(t, reasons[0], c.want)
		})
	}
}

// TestEditsOfResources edits resources that the program makes. After an update, the next up finds
// nothing to do.
func TestEditsOfResources(t *testing.T) {
	for _, c := range []struct {
		name  string
		token string
		over  values
		want  string
	}{
		{"nothing of a disk", diskType, nil, "same"},
		{"nothing of a regional disk", regionDiskType, nil, "same"},
		{"nothing of an instance", instanceType, nil, "same"},
		{"nothing of a bucket", bucketType, nil, "same"},
		{"nothing of an account", accountType, nil, "same"},
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
		{"a bucket's location in upper case", bucketType, values{"location": "US-CENTRAL1"}, "same"},
		{"a role", iamMemberType, values{"role": "roles/viewer"}, "replace"},
		{"a display name", accountType, values{"displayName": "Machines"}, "update"},
		{"pods of a node", nodePoolType, values{"maxPodsPerNode": 64}, "replace"},
		{"subsetting that GKE turned on", clusterType, values{"enableL4IlbSubsetting": false}, "replace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, old := newGoogle(t), properties(programs[c.token])
			edited := g.check(c.token, properties(with(programs[c.token], c.over)))
			for _, want := range []string{c.want, "same"} {
				diff, got := g.diff(c.token, old, edited), "same"
				if diff.Replace() {
					got = "replace"
				} else if diff.Changes == plugin.DiffSome {
					got = "update"
				}
				require.Equal(t, want, got, "%v", diff.DetailedDiff)
				if got != "update" {
					return
				}
				g.update(c.token, old, edited)
				old = edited
			}
		})
	}
}

// TestAnswersThatNoUpdateTakesAway: what GKE answers by itself and the provider does not compute is a
// change of each plan, and GKE refuses an update that names no field. The program ignores these fields.
func TestAnswersThatNoUpdateTakesAway(t *testing.T) {
	g, inputs := newGoogle(t), properties(programs[nodePoolType])
	g.create(nodePoolType, inputs)
	state := g.states[key(nodePoolType, inputs)]
	_, err := g.Update(t.Context(), plugin.UpdateRequest{
		URN: urn(nodePoolType), ID: state.id, OldInputs: inputs, OldOutputs: state.outputs, NewInputs: inputs,
	})
	assert.ErrorContains(t, err, "Must specify a field to update., badRequest")
}

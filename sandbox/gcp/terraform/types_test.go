package terraform

import (
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/google"
)

// TestInputsAreTheSchemas: a name, a type or a value that pulumi-gcp 7.38 does not have is
// refused in its words, however deep it is.
func TestInputsAreTheSchemas(t *testing.T) {
	e := newEngine(t, google.Settings{})
	node := func(settings values) values { return values{"nodeConfig": settings} }
	for _, c := range []struct {
		name  string
		token tokens.Type
		over  values
		want  string
	}{
		{"as it is", nodePoolType, nil, ""},
		{"a name", nodePoolType, values{"nodeCout": 2}, "nodeCout is not a property of"},
		{"a name inside", nodePoolType, node(values{"machinetype": "n2-standard-8"}), "nodeConfig.machinetype is not a property of"},
		{"a number as a text", nodePoolType, values{"nodeCount": "2"}, "nodeCount is not a TypeInt"},
		{"half a node", nodePoolType, values{"nodeCount": 2.5}, "nodeCount is not a TypeInt"},
		{"a text as a number", nodePoolType, node(values{"machineType": 8}), "nodeConfig.machineType is not a TypeString"},
		{"a switch as a text", nodePoolType, node(values{"gvnic": values{"enabled": "true"}}), "nodeConfig.gvnic.enabled is not a TypeBool"},
		{"one for many", nodePoolType, values{"nodeLocations": "us-central1-a"}, "nodeLocations is not a list"},
		{"many for one", nodePoolType, values{"management": []any{values{"autoRepair": true}}}, "management is not an object"},
		{"an element's", nodePoolType, node(values{"taints": []any{values{"key": 1, "value": "a", "effect": "NO_SCHEDULE"}}}), "nodeConfig.taints[0].key is not a TypeString"},
		{"a text for an entry", nodePoolType, node(values{"oauthScopes": []any{true}}), "nodeConfig.oauthScopes[0] is not a TypeString"},
		{"an enumeration", clusterType, values{"databaseEncryption": values{"state": "ALL_OBJECTS_ENCRYPTION_ENABLED"}},
			`expected database_encryption.0.state to be one of ["ENCRYPTED" "DECRYPTED"], got ALL_OBJECTS_ENCRYPTION_ENABLED`},
		{"an enumeration without a value", clusterType, values{"dnsConfig": values{"clusterDns": "PLATFORM_DEFAULT", "clusterDnsScope": ""}},
			`expected dns_config.0.cluster_dns_scope to be one of ["DNS_SCOPE_UNSPECIFIED" "CLUSTER_SCOPE" "VPC_SCOPE"], got `},
		{"an enumeration in a list", clusterType, values{"loggingConfig": values{"enableComponents": []any{"SYSTEM_COMPONENTS", "KUBELET"}}},
			`expected logging_config.0.enable_components.1 to be one of ["SYSTEM_COMPONENTS" "APISERVER" "CONTROLLER_MANAGER" "SCHEDULER" "WORKLOADS"], got KUBELET`},
		{"a taint's effect", nodePoolType, node(values{"taints": []any{values{"key": "a", "value": "b", "effect": "NoSchedule"}}}),
			`expected node_config.0.taint.0.effect to be one of ["NO_SCHEDULE" "PREFER_NO_SCHEDULE" "NO_EXECUTE"], got NoSchedule`},
		{"a conflict", clusterType, values{"binaryAuthorization": values{"enabled": true}},
			`Conflicting configuration arguments. "binary_authorization.0.enabled": conflicts with binary_authorization.0.evaluation_mode`},
		{"both of one", clusterType, values{"maintenancePolicy": values{"recurringWindow": values{"startTime": "2026-12-01T00:00:00Z", "endTime": "2026-12-01T04:00:00Z", "recurrence": "FREQ=DAILY"}}},
			`Invalid combination of arguments`},
		{"a number that is too small", nodePoolType, node(values{"diskSizeGb": 9}), "expected node_config.0.disk_size_gb to be at least (10), got 9"},
		{"a number outside of a range", bucketType, values{"retentionPolicy": values{"retentionPeriod": 0}},
			"expected retention_policy.0.retention_period to be in the range (1 - 2147483647), got 0"},
		{"a pattern", networkType, values{"name": "Persia"}, `"name" ("Persia") doesn't match regexp "^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"`},
		{"a short name of an account", accountType, values{"accountId": "node"}, `"account_id" ("node") doesn't match regexp "^[a-z](?:[-a-z0-9]{4,28}[a-z0-9])$"`},
		{"a range of addresses", subnetworkType, values{"ipCidrRange": "10.0.0.0"}, `"ip_cidr_range" is not a valid IP CIDR range: invalid CIDR address: 10.0.0.0`},
		{"a time of day", clusterType, values{"maintenancePolicy": values{"dailyMaintenanceWindow": values{"startTime": "3am"}}},
			`"maintenance_policy.0.daily_maintenance_window.0.start_time" ("3am") must be in the format HH:mm (RFC3339)`},
		{"a time", clusterType, values{"maintenancePolicy": values{"maintenanceExclusions": []any{values{"exclusionName": "release", "startTime": "soon", "endTime": "2027-01-03T00:00:00Z"}}}},
			`parsing time "soon" as "2006-01-02T15:04:05Z07:00"`},
		{"a member", memberType, values{"member": "persia-nodes@p.iam.gserviceaccount.com"}, "invalid value for member (IAM members must have one of the values outlined here"},
		{"a name of a cluster", clusterType, values{"name": "Persia"}, `"name" can only contain lowercase letters, numbers and hyphens`},
		{"a name of a bucket", bucketType, values{"name": "Checkpoints"}, `"Checkpoints" name value can only contain lowercase letters`},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := slices.IndexFunc(resourcesOfAStack, func(r resourceOfAStack) bool { return r.token == c.token })
			inputs := resource.NewPropertyMapFromMap(with(resourcesOfAStack[i].program, c.over))
			checked, err := e.Check(t.Context(), plugin.CheckRequest{URN: e.urn(c.token), News: inputs})
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

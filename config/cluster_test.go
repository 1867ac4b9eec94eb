package config_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/gcp"
	"persia/internal/testkit"
)

// TestClusterRefused checks the message for each mistake.
func TestClusterRefused(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		// Project and cluster.
		{"project with a capital", edits{"persia:project": "Persia"},
			"persia:project", []string{`"Persia"`, "6 to 30", "gcloud projects list"}},
		{"cluster without a name", edits{"persia:cluster.name": nil},
			"persia:cluster.name", []string{"Required", "write a name"}},
		{"cluster name with a capital", edits{"persia:cluster.name": "Persia"},
			"persia:cluster.name", []string{`"Persia"`, "lower case"}},
		{"cluster name too long", edits{"persia:cluster.name": "a-cluster-with-a-long-name"},
			"persia:cluster.name", []string{"26 characters", "at most 24", "NAME-nodes", "shorter"}},
		{"zone for a region", edits{"persia:cluster.region": "us-central1-a"},
			"persia:cluster.region", []string{"is a zone", "write the region, us-central1"}},
		{"region misspelt", edits{"persia:cluster.region": "us_central1"},
			"persia:cluster.region", []string{`"us_central1"`, "like us-central1"}},
		{"no zones for a machine that few have", edits{"persia:cluster.zones": []any{}, "persia:nodePools[0].zones": []any{"us-central1-a"}},
			"persia:nodePools[2].zones", []string{"Required", "m1-ultramem-160", "the zones of the cluster", "gcloud compute machine-types list"}},
		{"nodes over the zones that GKE chooses", edits{"persia:cluster.zones": nil, "persia:nodePools[0].zones": []any{"us-central1-a"}, "persia:nodePools[2].zones": []any{"us-central1-a"},
			"persia:nodePools[3]": edits{"name": "more", "machineType": "n2-standard-8", "nodes": 4}},
			"persia:nodePools[3].nodes", []string{"4", "3 zones", "write 3 or 6"}},
		{"zone of another region", edits{"persia:cluster.zones[0]": "us-east1-b"},
			"persia:cluster.zones[0]", []string{`"us-east1-b"`, "region us-central1", "us-central1-a"}},
		{"zone twice", edits{"persia:cluster.zones[1]": "us-central1-a"},
			"persia:cluster.zones[1]", []string{"Duplicate", `"us-central1-a"`, "once"}},
		{"release channel unknown", edits{"persia:cluster.releaseChannel": "regular"},
			"persia:cluster.releaseChannel", []string{`"regular"`, "RAPID, REGULAR or STABLE"}},
		{"system pool of one node", edits{"persia:cluster.systemPool.nodes": 1},
			"persia:cluster.systemPool.nodes", []string{"1", "at least 2"}},
		{"system pool of no node in a cluster to try things on", edits{"persia:cluster.systemPool.nodes": -1, "persia:cluster.deletionProtection": false},
			"persia:cluster.systemPool.nodes", []string{"-1", "at least 1"}},
		{"system pool uneven", edits{"persia:cluster.zones[1]": "us-central1-b", "persia:cluster.systemPool.nodes": 3},
			"persia:cluster.systemPool.nodes", []string{"3", "2 zones", "write 2 or 4"}},
		{"system pool with GPUs", edits{"persia:cluster.systemPool.machineType": "g2-standard-8"},
			"persia:cluster.systemPool.machineType", []string{"g2-standard-8", "e2-standard-4"}},
		{"system pool that takes no pd-balanced", edits{"persia:cluster.systemPool.machineType": "c4-standard-4"},
			"persia:cluster.systemPool.machineType", []string{"c4-standard-4", "pd-balanced", "e2-standard-4"}},
		{"system pool of an unknown machine", edits{"persia:cluster.systemPool.machineType": "e2-standrad-4"},
			"persia:cluster.systemPool.machineType", []string{"did you mean", "e2-standard-4"}},

		// Network.
		{"range that does not parse", edits{"persia:cluster.network.nodes": "10.0.0.0"},
			"persia:cluster.network.nodes", []string{`"10.0.0.0"`, "CIDR", "10.0.0.0/20"}},
		{"range of IPv6", edits{"persia:cluster.network.pods": "fd00::/20"},
			"persia:cluster.network.pods", []string{"fd00::/20", "IPv4"}},
		{"range with host bits", edits{"persia:cluster.network.nodes": "10.0.0.1/20"},
			"persia:cluster.network.nodes", []string{"10.0.0.1/20", "write 10.0.0.0/20"}},
		{"control plane not a /28", edits{"persia:cluster.network.controlPlane": "172.16.0.0/27"},
			"persia:cluster.network.controlPlane", []string{"172.16.0.0/27", "write 172.16.0.0/28"}},
		{"pods too small for GKE", edits{"persia:cluster.network.pods": "10.16.0.0/22"},
			"persia:cluster.network.pods", []string{"10.16.0.0/22", "from a /9 to a /21", "write 10.16.0.0/21"}},
		{"ranges overlap", edits{"persia:cluster.network.services": "10.65.0.0/20"},
			"persia:cluster.network.services", []string{"10.65.0.0/20", "overlaps pods", "10.64.0.0/14", "do not overlap"}},
		{"pods too small for the nodes", edits{"persia:cluster.network.pods": "10.16.0.0/21"},
			"persia:cluster.network.pods", []string{"has 2048 addresses", "up to 9 nodes need 2304", "write a /20", "maxPodsPerNode"}},
		{"nodes range too small", edits{"persia:cluster.network.nodes": "10.0.0.0/29"},
			"persia:cluster.network.nodes", []string{"has room for 4 nodes", "up to 9", "write a /28"}},
		{"autoscaling counts at its maximum", edits{"persia:nodePools[1].autoscaling.maxNodes": 5000, "persia:cluster.network.pods": "10.64.0.0/14"},
			"persia:cluster.network.pods", []string{"has 262144 addresses", "up to 5005 nodes", "write a /11"}},
		{"open to the world", edits{"persia:cluster.authorizedNetworks[0].cidr": "0.0.0.0/0"},
			"persia:cluster.authorizedNetworks[0].cidr", []string{"0.0.0.0/0", "to the world", "operators"}},
		{"authorized network without name", edits{"persia:cluster.authorizedNetworks[0].name": nil},
			"persia:cluster.authorizedNetworks[0].name", []string{"Required", "like office"}},
		{"authorized network twice", edits{"persia:cluster.authorizedNetworks[1]": edits{"name": "b", "cidr": "203.0.113.0/24"}},
			"persia:cluster.authorizedNetworks[1].cidr", []string{"203.0.113.0/24", "authorizedNetworks[0]", "once"}},
	}, "zone twice", "system pool uneven")
}

const (
	exclusionsPath = "persia:cluster.maintenance.exclusions"
	secretsKey     = "projects/persia-keys/locations/us-central1/keyRings/gke/cryptoKeys/secrets"
)

// exclusion is one maintenance exclusion.
// TestWarned checks the warnings about a cluster that may not be what the user meant.
func TestClusterWarned(t *testing.T) {
	const networks, endpoint, plan = "persia:cluster.authorizedNetworks", "persia:cluster.privateEndpoint", "persia:cluster.backup.plan"
	from := func(cidrs ...string) edits {
		var list []any
		for i, cidr := range cidrs {
			list = append(list, edits{"name": fmt.Sprint("n", i), "cidr": cidr})
		}
		return edits{networks: list}
	}
	backup := func(schedule string) edits { return edits{plan: edits{"schedule": schedule, "retainDays": 1}} }
	testkit.Warned(t, []testkit.Refusal{
		{"public nodes", edits{"persia:cluster.network": edits{"nodes": "8.8.0.0/20"}}, "persia:cluster.network.nodes", []string{"8.8.0.0/20 has public addresses", "10.0.0.0/20"}},
		{"public pods", edits{"persia:cluster.network": edits{"pods": "34.0.0.0/14"}}, "persia:cluster.network.pods", []string{"public addresses"}},
		{"shared addresses", edits{"persia:cluster.network": edits{"pods": "100.64.0.0/14"}}, "persia:cluster.network.pods", nil},
		{"no range", edits{networks: nil}, networks, []string{"is empty", "add the public address that you connect from"}},
		{"ranges that nobody comes from", from("192.168.1.0/24", "10.9.0.0/16"), networks, []string{"only ranges that nobody has", "public address"}},
		{"a range of documentation", from("203.0.113.0/24"), networks, []string{"only ranges that nobody has"}},
		{"a private and a public range", from("192.168.1.0/24", "8.8.8.0/24"), networks, nil},
		{"private endpoint", edits{networks: nil, endpoint: true}, endpoint, []string{"inside the network persia", "without privateEndpoint first"}},
		{"private endpoint alone", edits{networks: nil, endpoint: true}, networks, nil},
		{"backups every five minutes", backup("*/5 * * * *"), plan + ".schedule", []string{"5 minutes apart", "0 4 * * *"}},
		{"backups every hour", backup("0 * * * *"), plan + ".schedule", nil},
	})
}

func exclusion(name, start, end string) edits {
	return edits{exclusionsPath: []any{edits{"name": name, "start": start, "end": end}}}
}

// repeated returns n values, each made from its index.
func repeated(n int, value func(i int) any) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = value(i)
	}
	return values
}

func TestLoadRefusesClusterSettings(t *testing.T) {
	plan := func(schedule string, retainDays int) edits {
		return edits{"persia:cluster.backup.plan": edits{"schedule": schedule, "retainDays": retainDays}}
	}
	testkit.Refused(t, []testkit.Refusal{
		// Maintenance.
		{"window of the day with one digit", edits{"persia:cluster.maintenance.startTime": "3:00"},
			"persia:cluster.maintenance.startTime", []string{`"3:00"`, "UTC", "like 03:00"}},
		{"window of the day at an hour that is none", edits{"persia:cluster.maintenance.startTime": "24:00"},
			"persia:cluster.maintenance.startTime", []string{`"24:00"`, "like 03:00"}},
		{"more exclusions than GKE takes", edits{exclusionsPath: repeated(21, func(i int) any {
			return edits{"name": fmt.Sprintf("training-%d", i), "start": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"}
		})},
			exclusionsPath, []string{"21", "at most 20", "remove"}},
		{"exclusion without a name", exclusion("", "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"),
			exclusionsPath + "[0].name", []string{"Required", "write a name"}},
		{"exclusion with a space", exclusion("long training", "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"),
			exclusionsPath + "[0].name", []string{`"long training"`, "lower case"}},
		{"exclusion twice", edits{exclusionsPath: repeated(2, func(int) any {
			return edits{"name": "training", "start": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"}
		})},
			exclusionsPath + "[1].name", []string{"Duplicate", "exclusions[0]"}},
		{"exclusion without a start", exclusion("training", "", "2026-12-02T00:00:00Z"),
			exclusionsPath + "[0].start", []string{"Required", "2026-12-01T00:00:00Z"}},
		{"exclusion from a day", exclusion("training", "2026-12-01", "2026-12-02T00:00:00Z"),
			exclusionsPath + "[0].start", []string{`"2026-12-01"`, "a time like 2026-12-01T00:00:00Z"}},
		{"exclusion in local time", exclusion("training", "2026-12-01T00:00:00+02:00", "2026-12-02T00:00:00Z"),
			exclusionsPath + "[0].start", []string{"+02:00", "in UTC", "write 2026-11-30T22:00:00Z"}},
		{"exclusion in milliseconds", exclusion("training", "2026-12-01T00:00:00Z", "2026-12-02T00:00:00.500Z"),
			exclusionsPath + "[0].end", []string{"whole seconds", "write 2026-12-02T00:00:00Z"}},
		{"exclusion upside down", exclusion("training", "2026-12-02T00:00:00Z", "2026-12-01T00:00:00Z"),
			exclusionsPath + "[0].end", []string{"2026-12-01T00:00:00Z", "after start, which is 2026-12-02T00:00:00Z"}},
		{"exclusion of no time", exclusion("training", "2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"),
			exclusionsPath + "[0].end", []string{"after start"}},
		{"exclusion of more than half a year", exclusion("training", "2026-12-01T00:00:00Z", "2027-05-30T00:00:01Z"),
			exclusionsPath + "[0].end", []string{"at most 180 days", "write 2027-05-30T00:00:00Z or earlier"}},

		// Access to the control plane.
		{"release channel of a later provider", edits{"persia:cluster.releaseChannel": "EXTENDED"},
			"persia:cluster.releaseChannel", []string{`"EXTENDED"`, "RAPID, REGULAR or STABLE"}},
		{"private endpoint without private nodes", edits{"persia:cluster.privateNodes": false, "persia:cluster.privateEndpoint": true},
			"persia:cluster.privateEndpoint", []string{"true", "requires private nodes", "remove it"}},
		{"control plane range without private nodes", edits{"persia:cluster.privateNodes": false, "persia:cluster.network.controlPlane": "172.16.0.0/28"},
			"persia:cluster.network.controlPlane", []string{"privateNodes is false", `remove "172.16.0.0/28"`}},
		{"open to half of the world", edits{"persia:cluster.authorizedNetworks[0].cidr": "128.0.0.0/1"},
			"persia:cluster.authorizedNetworks[0].cidr", []string{"128.0.0.0/1", "almost the whole world", "/8 or smaller"}},
		{"more networks than GKE takes", edits{"persia:cluster.authorizedNetworks": repeated(101, func(i int) any {
			return edits{"name": "office", "cidr": fmt.Sprintf("198.51.100.%d/32", i)}
		})},
			"persia:cluster.authorizedNetworks", []string{"101", "at most 100", "merge"}},
		{"public addresses at a private endpoint", edits{"persia:cluster.privateEndpoint": true, "persia:cluster.authorizedNetworks[0].cidr": "8.8.8.0/24"},
			"persia:cluster.authorizedNetworks[0].cidr", []string{"8.8.8.0/24", "public addresses", "remove privateEndpoint"}},
		{"DNS unknown", edits{"persia:cluster.dns": "COREDNS"},
			"persia:cluster.dns", []string{`"COREDNS"`, "CLOUD_DNS or KUBE_DNS"}},

		// Permissions.
		{"node role without its name", edits{"persia:cluster.nodeRoles": []any{""}},
			"persia:cluster.nodeRoles[0]", []string{"Required", "roles/storage.objectViewer"}},
		{"node role without its prefix", edits{"persia:cluster.nodeRoles": []any{"storage.objectViewer"}},
			"persia:cluster.nodeRoles[0]", []string{`"storage.objectViewer"`, "projects/P/roles/R"}},
		{"node role of an owner", edits{"persia:cluster.nodeRoles": []any{"roles/owner"}},
			"persia:cluster.nodeRoles[0]", []string{"roles/owner", "change everything in the project"}},
		{"node role of an editor", edits{"persia:cluster.nodeRoles": []any{"roles/editor"}},
			"persia:cluster.nodeRoles[0]", []string{"roles/editor", "change everything in the project"}},
		{"node role that nodes have", edits{"persia:cluster.nodeRoles": []any{"roles/artifactregistry.reader"}},
			"persia:cluster.nodeRoles[0]", []string{"every node already has", "remove it"}},
		{"node role twice", edits{"persia:cluster.nodeRoles": []any{"roles/storage.objectViewer", "roles/storage.objectViewer"}},
			"persia:cluster.nodeRoles[1]", []string{"Duplicate", "nodeRoles[0]"}},
		{"security posture unknown", edits{"persia:cluster.securityPosture": "ENTERPRISE"},
			"persia:cluster.securityPosture", []string{`"ENTERPRISE"`, "BASIC or DISABLED"}},
		{"key by its name", edits{"persia:cluster.encryption.secrets": "secrets"},
			"persia:cluster.encryption.secrets", []string{`"secrets"`, "projects/P/locations/L", "gcloud kms keys list"}},
		{"version of a key", edits{"persia:cluster.encryption.secrets": secretsKey + "/cryptoKeyVersions/1"},
			"persia:cluster.encryption.secrets", []string{"chooses the version", "write " + secretsKey}},
		{"key for Secrets elsewhere", edits{"persia:cluster.encryption.secrets": "projects/p/locations/global/keyRings/r/cryptoKeys/k"},
			"persia:cluster.encryption.secrets", []string{"locations/global", "location us-central1,", "GKE"}},
		{"key for boot disks elsewhere", edits{"persia:cluster.encryption.bootDisks": "projects/p/locations/us/keyRings/r/cryptoKeys/k"},
			"persia:cluster.encryption.bootDisks", []string{"locations/us", "us-central1 or global", "Compute Engine"}},

		// GKE's own components.
		{"autoscaling profile unknown", edits{"persia:cluster.autoscalingProfile": "FAST"},
			"persia:cluster.autoscalingProfile", []string{`"FAST"`, "OPTIMIZE_UTILIZATION or BALANCED"}},
		{"bucket without its driver", edits{"persia:cluster.csiDrivers.gcsFuse": false},
			"persia:cluster.csiDrivers.gcsFuse", []string{"false", "must be true", "persia:storage[0]"}},
		{"bucket without Workload Identity", edits{"persia:cluster.workloadIdentity": false},
			"persia:cluster.workloadIdentity", []string{"false", "must be true", "persia:storage[0]"}},
		{"log component unknown", edits{"persia:cluster.logging.components": []any{"SYSTEM_COMPONENTS", "DCGM"}},
			"persia:cluster.logging.components[1]", []string{`"DCGM"`, "SCHEDULER or CONTROLLER_MANAGER"}},
		{"logs without the system's", edits{"persia:cluster.logging.components": []any{"APISERVER"}},
			"persia:cluster.logging.components", []string{"Required", "SYSTEM_COMPONENTS", "[] for none"}},
		{"component unknown", edits{"persia:cluster.monitoring.components": []any{"SYSTEM_COMPONENTS", "GPU"}},
			"persia:cluster.monitoring.components[1]", []string{`"GPU"`, "KUBELET or DCGM"}},
		{"component twice", edits{"persia:cluster.monitoring.components": []any{"SYSTEM_COMPONENTS", "DCGM", "DCGM"}},
			"persia:cluster.monitoring.components[2]", []string{"Duplicate", "DCGM", "once"}},
		{"components without the system's", edits{"persia:cluster.monitoring.components": []any{"DCGM"}},
			"persia:cluster.monitoring.components", []string{"Required", "SYSTEM_COMPONENTS", "[] for none"}},

		// Backups.
		{"backups without their agent", edits{"persia:cluster.backup": edits{"agent": false, "plan": edits{"schedule": "0 4 * * *"}}},
			"persia:cluster.backup.agent", []string{"false", "must be true", "plan"}},
		{"backups at no time", edits{"persia:cluster.backup.plan": edits{"retainDays": 7}},
			"persia:cluster.backup.plan.schedule", []string{"Required", "0 4 * * *"}},
		{"backups at a time of the day", plan("04:00", 7),
			"persia:cluster.backup.plan.schedule", []string{`"04:00"`, "five fields"}},
		{"backups by a word", plan("@daily", 7),
			"persia:cluster.backup.plan.schedule", []string{`"@daily"`, "five fields"}},
		{"backups in a time zone", plan("TZ=Europe/Zurich 0 4 * * *", 7),
			"persia:cluster.backup.plan.schedule", []string{"TZ=Europe/Zurich", "five fields"}},
		{"backups at an hour that is none", plan("0 25 * * *", 7),
			"persia:cluster.backup.plan.schedule", []string{`"0 25 * * *"`, "cron", "25"}},
		{"backups on a day that never occurs", plan("0 4 30 2 *", 7),
			"persia:cluster.backup.plan.schedule", []string{`"0 4 30 2 *"`, "never occurs"}},
		{"backups every minute", plan("* * * * *", 7),
			"persia:cluster.backup.plan.schedule", []string{"1 minutes apart", "keeps only 360", "with fewer backups"}},
		{"backups kept for less than a day", plan("0 4 * * *", -1),
			"persia:cluster.backup.plan.retainDays", []string{"-1", "from 1 to 365"}},
		{"backups kept for more than a year", plan("0 4 * * 1", 366),
			"persia:cluster.backup.plan.retainDays", []string{"366", "from 1 to 365"}},
		{"more daily backups than are kept", plan("0 4 * * *", 361),
			"persia:cluster.backup.plan.retainDays", []string{"361", "at most 360", "every 1440 minutes"}},
		{"more hourly backups than are kept", plan("30 * 1,28 * *", 16),
			"persia:cluster.backup.plan.retainDays", []string{"16", "at most 15", "every 60 minutes"}},
	})
}

func TestLoadAcceptsClusterSettings(t *testing.T) {
	withoutBuckets := edits{"persia:storage": []any{}, "persia:jobs[0].mounts": nil}
	with := func(more edits) edits {
		changes := edits{}
		for _, from := range []edits{withoutBuckets, more} {
			for path, value := range from {
				changes[path] = value
			}
		}
		return changes
	}
	for name, changes := range map[string]edits{
		"a window in the last minute": {"persia:cluster.maintenance.startTime": "23:59"},
		"the longest exclusion":       exclusion("training", "2026-12-01T00:00:00Z", "2027-05-30T00:00:00Z"),
		"the latest versions":         {"persia:cluster.releaseChannel": "RAPID"},
		"public nodes":                {"persia:cluster.privateNodes": false},
		"a private endpoint":          {"persia:cluster.privateEndpoint": true, "persia:cluster.authorizedNetworks[0].cidr": "10.128.0.0/9"},
		"nobody from outside":         {"persia:cluster.authorizedNetworks": []any{}},
		"a /8 of addresses":           {"persia:cluster.authorizedNetworks[0].cidr": "11.0.0.0/8"},
		"everything turned off": with(edits{
			"persia:cluster.dataplaneV2":                  false,
			"persia:cluster.dns":                          "KUBE_DNS",
			"persia:cluster.workloadIdentity":             false,
			"persia:cluster.shieldedNodes":                false,
			"persia:cluster.binaryAuthorization":          false,
			"persia:cluster.securityPosture":              "DISABLED",
			"persia:cluster.autoscalingProfile":           "BALANCED",
			"persia:cluster.imageStreaming":               false,
			"persia:cluster.csiDrivers":                   edits{"persistentDisk": false, "filestore": false, "gcsFuse": false},
			"persia:cluster.monitoring.components":        []any{},
			"persia:cluster.monitoring.managedPrometheus": false,
			"persia:cluster.costManagement":               false,
			"persia:cluster.backup.agent":                 false,
		}),
		"roles of every kind": {"persia:cluster.nodeRoles": []any{
			"roles/storage.objectViewer", "projects/persia-project/roles/node_reader", "organizations/123456789012/roles/node.reader"}},
		"keys": {"persia:cluster.encryption": edits{
			"secrets": secretsKey, "bootDisks": "projects/p/locations/global/keyRings/r/cryptoKeys/k"}},
		"system metrics only":     {"persia:cluster.monitoring.components": []any{"SYSTEM_COMPONENTS"}},
		"daily backups":           {"persia:cluster.backup.plan": edits{"schedule": "0 4 * * *", "retainDays": 360}},
		"weekly backups":          {"persia:cluster.backup.plan": edits{"schedule": "0 4 * * MON", "retainDays": 365}},
		"backups on leap days":    {"persia:cluster.backup.plan": edits{"schedule": "0 4 29 2 *", "retainDays": 365}},
		"backups by the half day": {"persia:cluster.backup.plan": edits{"schedule": "0 4,16 * * *"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testkit.Load(t, changes)
			assert.NoError(t, err)
		})
	}
}

// TestClusterDefaults checks that the defaults are the safe choices.
func TestClusterDefaults(t *testing.T) {
	s, err := testkit.Load(t, edits{"persia:cluster.backup.plan": edits{"schedule": "0 4 * * *"}})
	require.NoError(t, err)
	c := s.Cluster
	for name, on := range map[string]bool{
		"deletionProtection": c.DeletionProtection, "privateNodes": c.PrivateNodes, "dataplaneV2": c.DataplaneV2,
		"workloadIdentity": c.WorkloadIdentity, "shieldedNodes": c.ShieldedNodes, "binaryAuthorization": c.BinaryAuthorization,
		"imageStreaming": c.ImageStreaming, "persistentDisk": c.CSIDrivers.PersistentDisk, "filestore": c.CSIDrivers.Filestore,
		"gcsFuse": c.CSIDrivers.GCSFuse, "managedPrometheus": c.Monitoring.ManagedPrometheus,
		"costManagement": c.CostManagement, "agent": c.Backup.Agent,
	} {
		assert.True(t, on, name)
	}
	assert.False(t, c.PrivateEndpoint)
	assert.Equal(t, config.Maintenance{StartTime: "03:00"}, c.Maintenance)
	assert.Equal(t, "CLOUD_DNS", c.DNS)
	assert.Equal(t, "BASIC", c.SecurityPosture)
	assert.Equal(t, "OPTIMIZE_UTILIZATION", c.AutoscalingProfile)
	assert.Equal(t, gcp.MonitoringComponents, c.Monitoring.Components)
	assert.Equal(t, 7, c.Backup.Plan.RetainDays)
}

// TestTurnedOffOnlyIfDecoded checks that a setting that could not be decoded does not count
// as off.
func TestTurnedOffOnlyIfDecoded(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		{"private nodes", edits{"persia:cluster.privateNodes": "no", "persia:cluster.privateEndpoint": true},
			"persia:cluster.privateNodes", []string{"true or false"}},
		{"driver of buckets", edits{"persia:cluster.csiDrivers.gcsFuse": "no"},
			"persia:cluster.csiDrivers.gcsFuse", []string{"true or false"}},
		{"a component", edits{"persia:cluster.monitoring.components": []any{1}},
			"persia:cluster.monitoring.components[0]", []string{"a string"}},
	})
}

func TestPublicNodesNeedNoControlPlaneRange(t *testing.T) {
	s, err := testkit.Load(t, edits{"persia:cluster.privateNodes": false})
	require.NoError(t, err)
	assert.Empty(t, s.Cluster.Network.ControlPlane)
}

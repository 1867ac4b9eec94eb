package config_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/internal/testkit"
)

const (
	exclusionsPath = "persia:cluster.maintenance.exclusions"
	secretsKey     = "projects/persia-keys/locations/us-central1/keyRings/gke/cryptoKeys/secrets"
)

func exclusion(name, start, end string) edits {
	return edits{exclusionsPath: []any{edits{"name": name, "start": start, "end": end}}}
}

// TestClusterRefused checks the message for each mistake.
func TestClusterRefused(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		{"project with a capital", edits{"persia:project": "Persia"}, "persia:project", []string{`"Persia"`, "6 to 30", "gcloud projects list"}},
		{"cluster name with a capital", edits{"persia:cluster.name": "Persia"}, "persia:cluster.name", []string{`"Persia"`, "lower case"}},
		{"no zones for a machine that few have", edits{"persia:cluster.zones": []any{}, "persia:nodePools[0].zones": []any{"us-central1-a"}},
			"persia:nodePools[2].zones", []string{"Required", "m1-ultramem-160", "the zones of the cluster", "gcloud compute machine-types list"}},
		{"nodes over the zones that GKE chooses", edits{"persia:cluster.zones": nil, "persia:nodePools[0].zones": []any{"us-central1-a"}, "persia:nodePools[2].zones": []any{"us-central1-a"},
			"persia:nodePools[3]": edits{"name": "more", "machineType": "n2-standard-8", "nodes": 4}},
			"persia:nodePools[3].nodes", []string{"4", "3 zones", "write 6"}},
		{"zone of another region", edits{"persia:cluster.zones[0]": "us-east1-b"}, "persia:cluster.zones[0]", []string{`"us-east1-b"`, "region us-central1", "us-central1-a"}},
		{"zone twice", edits{"persia:cluster.zones[1]": "us-central1-a"}, "persia:cluster.zones[1]", []string{"Duplicate", `"us-central1-a"`, "remove it"}},
		{"system pool of one node", edits{"persia:cluster.systemPool.nodes": 1}, "persia:cluster.systemPool.nodes", []string{"1", "at least 2"}},
		{"system pool uneven", edits{"persia:cluster.zones[1]": "us-central1-b", "persia:cluster.systemPool.nodes": 3},
			"persia:cluster.systemPool.nodes", []string{"3", "2 zones", "write 4"}},
		{"system pool with GPUs", edits{"persia:cluster.systemPool.machineType": "g2-standard-8"}, "persia:cluster.systemPool.machineType", []string{"g2-standard-8", "e2-standard-4"}},
		{"system pool that takes no pd-balanced", edits{"persia:cluster.systemPool.machineType": "c4-standard-4"},
			"persia:cluster.systemPool.machineType", []string{"c4-standard-4", "pd-balanced", "e2-standard-4"}},
		{"system pool of an unknown machine", edits{"persia:cluster.systemPool.machineType": "e2-standrad-4"},
			"persia:cluster.systemPool.machineType", []string{`write "e2-standard-4"`}},

		// Network.
		{"range that does not parse", edits{"persia:cluster.network.nodes": "10.0.0.0"}, "persia:cluster.network.nodes", []string{`"10.0.0.0"`, "CIDR", "10.0.0.0/20"}},
		{"range of IPv6", edits{"persia:cluster.network.pods": "fd00::/20"}, "persia:cluster.network.pods", []string{"fd00::/20", "IPv4"}},
		{"range with host bits", edits{"persia:cluster.network.nodes": "10.0.0.1/20"}, "persia:cluster.network.nodes", []string{"10.0.0.1/20", "without host bits"}},
		{"public pods", edits{"persia:cluster.network.pods": "34.0.0.0/14"}, "persia:cluster.network.pods", []string{"34.0.0.0/14", "private addresses", "10.0.0.0/14"}},
		{"Docker's range", edits{"persia:cluster.network.services": "172.17.0.0/20"}, "persia:cluster.network.services", []string{"172.17.0.0/20", "Docker", "10.0.0.0/20"}},
		{"pods too small for the nodes", edits{"persia:cluster.network.pods": "10.16.0.0/21"},
			"persia:cluster.network.pods", []string{"has 2048 addresses", "up to 9 nodes need 2304", "write 10.16.0.0/20", "maxPodsPerNode"}},
		{"services too large", edits{"persia:cluster.network.services": "10.0.0.0/12", "persia:cluster.network.nodes": "10.128.0.0/20"},
			"persia:cluster.network.services", []string{"10.0.0.0/12", "from a /16 to a /28", "write 10.0.0.0/16"}},
		{"control plane of another size", edits{"persia:cluster.network.controlPlane": "172.16.0.0/26"},
			"persia:cluster.network.controlPlane", []string{"172.16.0.0/26", "from a /28 to a /28", "write 172.16.0.0/28"}},
		{"pods of half the internet", edits{"persia:cluster.network.pods": "10.0.0.0/8"}, "persia:cluster.network.pods", []string{"from a /9", "write 10.0.0.0/9"}},
		{"nodes range too small", edits{"persia:cluster.network.nodes": "10.0.0.0/29"}, "persia:cluster.network.nodes", []string{"has 8 addresses", "up to 9 nodes need 13", "write 10.0.0.0/28"}},
		{"open to half of the world", edits{"persia:cluster.authorizedNetworks[0].cidr": "128.0.0.0/1"},
			"persia:cluster.authorizedNetworks[0].cidr", []string{"128.0.0.0/1", "to the world", "operators", "/8 or smaller"}},

		// Maintenance.
		{"a window that starts at no time of day", edits{"persia:cluster.maintenance.startTime": "3am"}, "persia:cluster.maintenance.startTime", []string{`"3am"`, "like 03:00"}},
		{"exclusion twice", edits{exclusionsPath: []any{
			edits{"name": "training", "start": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"},
			edits{"name": "training", "start": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"}}},
			exclusionsPath + "[1].name", []string{"Duplicate", "exclusions[0]"}},
		{"exclusion without a start", exclusion("training", "", "2026-12-02T00:00:00Z"), exclusionsPath + "[0].start", []string{"Required", "2026-12-01T00:00:00Z"}},
		{"exclusion from a day", exclusion("training", "2026-12-01", "2026-12-02T00:00:00Z"), exclusionsPath + "[0].start", []string{`"2026-12-01"`, "a time like 2026-12-01T00:00:00Z"}},
		{"exclusion in local time", exclusion("training", "2026-12-01T00:00:00+02:00", "2026-12-02T00:00:00Z"),
			exclusionsPath + "[0].start", []string{"+02:00", "in UTC", "write 2026-11-30T22:00:00Z"}},
		{"exclusion in milliseconds", exclusion("training", "2026-12-01T00:00:00Z", "2026-12-02T00:00:00.500Z"),
			exclusionsPath + "[0].end", []string{"whole seconds", "write 2026-12-02T00:00:00Z"}},

		// Keys and observability.
		{"key by its name", edits{"persia:cluster.encryption.secrets": "secrets"},
			"persia:cluster.encryption.secrets", []string{`"secrets"`, "projects/P/locations/L", "gcloud kms keys list"}},
		{"key for boot disks elsewhere", edits{"persia:cluster.encryption.bootDisks": "projects/p/locations/us/keyRings/r/cryptoKeys/k"},
			"persia:cluster.encryption.bootDisks", []string{"locations/us", "us-central1 or global", "Compute Engine"}},
		{"component that could not be read", edits{"persia:cluster.monitoring.components": []any{1}}, "persia:cluster.monitoring.components[0]", []string{"a string"}},
		{"component twice", edits{"persia:cluster.monitoring.components": []any{"SYSTEM_COMPONENTS", "DCGM", "DCGM"}},
			"persia:cluster.monitoring.components[2]", []string{"Duplicate", "DCGM", "remove it"}},
	}, "zone twice", "system pool uneven")
}

// TestClusterWarned checks the warnings about a cluster that may not be what the user meant.
func TestClusterWarned(t *testing.T) {
	const networks, endpoint = "persia:cluster.authorizedNetworks", "persia:cluster.privateEndpoint"
	from := func(cidrs ...string) edits {
		var list []any
		for i, cidr := range cidrs {
			list = append(list, edits{"name": fmt.Sprint("n", i), "cidr": cidr})
		}
		return edits{networks: list}
	}
	testkit.Warned(t, []testkit.Refusal{
		{"ranges that nobody comes from", from("192.168.1.0/24", "10.9.0.0/16"), networks, []string{"only ranges that nobody has", "public address"}},
		{"a private and a public range", from("192.168.1.0/24", "8.8.8.0/24"), networks, nil},
		{"private endpoint", edits{networks: nil, endpoint: true}, endpoint, []string{"inside the network persia", "without privateEndpoint first"}},
		{"private endpoint alone", edits{networks: nil, endpoint: true}, networks, nil},
	})
}

func TestClusterAccepted(t *testing.T) {
	testkit.Accepted(t, map[string]edits{
		"a /8 of addresses": {"persia:cluster.authorizedNetworks[0].cidr": "11.0.0.0/8"},
		"shared addresses":  {"persia:cluster.network": edits{"pods": "100.64.0.0/14"}},
		"everything turned off": {
			"persia:cluster.imageStreaming":               false,
			"persia:cluster.logging.components":           []any{},
			"persia:cluster.monitoring.components":        []any{},
			"persia:cluster.monitoring.managedPrometheus": false,
		},
		"keys": {"persia:cluster.encryption": edits{
			"secrets": secretsKey, "bootDisks": "projects/p/locations/global/keyRings/r/cryptoKeys/k"}},
	})
}

// TestNetworkGrowsWithThePools checks the ranges that the program chooses.
func TestNetworkGrowsWithThePools(t *testing.T) {
	s := testkit.Must(testkit.Load(t, edits{"persia:nodePools[1].autoscaling.maxNodes": 5000}))(t)
	assert.Equal(t, "10.0.0.0/19", s.Cluster.Network.Nodes)
	assert.Equal(t, "10.64.0.0/11", s.Cluster.Network.Pods)
}

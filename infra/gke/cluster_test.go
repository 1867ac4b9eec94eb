package gke_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"persia/config"
	"persia/internal/programtest"
	"persia/internal/testkit"
)

const (
	aKey = "projects/my-keys/locations/us-central1/keyRings/gke/cryptoKeys/cluster"
)

// input is the value at a path of a resource, by default and after a change of the stack file. Nil
// is no value.
type input struct{ safe, edited any }

// clusterSettings are the settings of persia:cluster, with a value other than
// their default, and what of it reaches Google Cloud.
var clusterSettings = []struct {
	setting string
	value   any
	// of is the resource's type, if it is not the cluster, and name what comes
	// behind the cluster's name in its name.
	of, name string
	inputs   map[string]input
}{
	{setting: "releaseChannel", value: "RAPID", inputs: map[string]input{
		"releaseChannel.channel": {"REGULAR", "RAPID"},
	}},
	{setting: "deletionProtection", value: false, inputs: map[string]input{
		"deletionProtection": {true, false},
	}},
	{setting: "maintenance.startTime", value: "21:30", inputs: map[string]input{
		"maintenancePolicy.dailyMaintenanceWindow.startTime": {"03:00", "21:30"},
	}},
	{
		setting: "maintenance.exclusions",
		value:   []any{map[string]any{"name": "training", "start": "2026-12-01T00:00:00Z", "end": "2027-01-31T00:00:00Z"}},
		inputs: map[string]input{
			"maintenancePolicy.maintenanceExclusions[0].exclusionName":          {nil, "training"},
			"maintenancePolicy.maintenanceExclusions[0].startTime":              {nil, "2026-12-01T00:00:00Z"},
			"maintenancePolicy.maintenanceExclusions[0].endTime":                {nil, "2027-01-31T00:00:00Z"},
			"maintenancePolicy.maintenanceExclusions[0].exclusionOptions.scope": {nil, "NO_MINOR_OR_NODE_UPGRADES"},
		},
	},

	{setting: "privateEndpoint", value: true, inputs: map[string]input{
		"privateClusterConfig.enablePrivateEndpoint": {false, true},
	}},
	{
		setting: "authorizedNetworks",
		value:   []any{map[string]any{"name": "office", "cidr": "203.0.113.0/24"}},
		inputs: map[string]input{
			"masterAuthorizedNetworksConfig.cidrBlocks": {[]any{}, []any{
				map[string]any{"displayName": "office", "cidrBlock": "203.0.113.0/24"},
			}},
		},
	},
	{setting: "network.nodes", value: "10.8.0.0/20", of: testkit.Subnetwork, inputs: map[string]input{
		"ipCidrRange": {"10.0.0.0/20", "10.8.0.0/20"},
	}},
	{setting: "network.pods", value: "10.128.0.0/14", of: testkit.Subnetwork, inputs: map[string]input{
		"secondaryIpRanges[0].ipCidrRange": {"10.64.0.0/14", "10.128.0.0/14"},
	}},
	{setting: "network.services", value: "10.9.0.0/20", of: testkit.Subnetwork, inputs: map[string]input{
		"secondaryIpRanges[1].ipCidrRange": {"10.1.0.0/20", "10.9.0.0/20"},
	}},
	{setting: "network.controlPlane", value: "172.16.1.0/28", inputs: map[string]input{
		"privateClusterConfig.masterIpv4CidrBlock": {"172.16.0.0/28", "172.16.1.0/28"},
	}},

	{setting: "encryption.secrets", value: aKey, inputs: map[string]input{
		"databaseEncryption": {map[string]any{"state": "DECRYPTED"}, map[string]any{"state": "ENCRYPTED", "keyName": aKey}},
	}},
	{setting: "encryption.bootDisks", value: aKey, inputs: map[string]input{
		"nodeConfig.bootDiskKmsKey": {nil, aKey},
	}},
	{setting: "encryption.bootDisks", value: aKey, of: testkit.NodePool, name: "-nn-workers", inputs: map[string]input{
		"nodeConfig.bootDiskKmsKey": {nil, aKey},
	}},

	{setting: "systemPool.machineType", value: "n2-standard-4", of: testkit.NodePool, name: "-system", inputs: map[string]input{
		"nodeConfig.machineType": {"e2-standard-4", "n2-standard-4"},
	}},
	{setting: "systemPool.nodes", value: 4, of: testkit.NodePool, name: "-system", inputs: map[string]input{
		"nodeCount": {3.0, 4.0},
	}},
	{setting: "imageStreaming", value: false, of: testkit.NodePool, name: "-nats", inputs: map[string]input{
		"nodeConfig.gcfsConfig.enabled": {true, nil},
	}},
	{setting: "logging.components", value: []any{"APISERVER", "SYSTEM_COMPONENTS"}, inputs: map[string]input{
		"loggingConfig.enableComponents": {
			[]any{"SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER"},
			[]any{"SYSTEM_COMPONENTS", "APISERVER"},
		},
	}},
	{setting: "monitoring.components", value: []any{"DCGM", "HPA", "SYSTEM_COMPONENTS"}, inputs: map[string]input{
		"monitoringConfig.enableComponents": {
			[]any{"SYSTEM_COMPONENTS", "STORAGE", "HPA", "POD", "DAEMONSET", "DEPLOYMENT", "STATEFULSET", "CADVISOR", "KUBELET", "DCGM"},
			[]any{"SYSTEM_COMPONENTS", "HPA", "DCGM"},
		},
	}},
	{setting: "monitoring.managedPrometheus", value: false, inputs: map[string]input{
		"monitoringConfig.managedPrometheus.enabled": {true, false},
	}},
}

// settingsElsewhere are tested by themselves.
var settingsElsewhere = []string{"name", "existing", "replace", "region", "zones"}

// set puts a value at a path of names, like network.nodes.
func set(object map[string]any, path string, value any) {
	outer, inner, nested := strings.Cut(path, ".")
	if !nested {
		object[outer] = value
		return
	}
	if object[outer] == nil {
		object[outer] = map[string]any{}
	}
	set(object[outer].(map[string]any), inner, value)
}

func TestClusterSettings(t *testing.T) {
	silent := prodWith(t, func(map[string]any) {})
	for _, c := range clusterSettings {
		typeToken := c.of
		if typeToken == "" {
			typeToken = testkit.Cluster
		}
		t.Run(c.setting+" "+typeToken, func(t *testing.T) {
			edited := prodWith(t, func(cluster map[string]any) { set(cluster, c.setting, c.value) })
			for path, want := range c.inputs {
				assert.Equal(t, want.safe, testkit.Found(t, silent.One(t, typeToken, "persia-prod"+c.name), path), path)
				assert.Equal(t, want.edited, testkit.Found(t, edited.One(t, typeToken, "persia-prod"+c.name), path), path)
			}
		})
	}
}

// TestEveryClusterSettingIsTested finds a setting that nothing reads.
func TestEveryClusterSettingIsTested(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range clusterSettings {
		tested[c.setting] = true
	}
	for _, setting := range settingsElsewhere {
		tested[setting] = true
	}
	for _, setting := range settingsOf(reflect.TypeFor[config.Cluster](), "") {
		assert.True(t, tested[setting], setting)
		delete(tested, setting)
	}
	assert.Empty(t, tested, "there are no such settings")
}

// settingsOf returns the paths of the fields of a type and of the structs in it.
func settingsOf(of reflect.Type, prefix string) []string {
	var paths []string
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type.Kind() == reflect.Struct {
			paths = append(paths, settingsOf(field.Type, prefix+name+".")...)
			continue
		}
		paths = append(paths, prefix+name)
	}
	return paths
}

func TestCluster(t *testing.T) {
	prod := programtest.DeployStack(t, "prod")
	cluster := prod.One(t, testkit.Cluster, "persia-prod")
	for path, want := range map[string]any{
		"name":                  "persia-prod",
		"location":              "us-central1",
		"nodeLocations":         []any{"us-central1-c"},
		"removeDefaultNodePool": true,
		"initialNodeCount":      1.0,
		"deletionProtection":    false,
		"ipAllocationPolicy.clusterSecondaryRangeName":  "pods",
		"ipAllocationPolicy.servicesSecondaryRangeName": "services",
		"nodeConfig.serviceAccount":                     "persia-prod-nodes@my-project.iam.gserviceaccount.com",
	} {
		assert.Equal(t, want, testkit.At(t, cluster, path), path)
	}
	timeouts := cluster.RegisterRPC.GetCustomTimeouts()
	assert.Equal(t, []string{"60m", "120m", "60m"}, []string{timeouts.GetCreate(), timeouts.GetUpdate(), timeouts.GetDelete()})
}

func TestNodesReachTheInternet(t *testing.T) {
	private := prodWith(t, func(map[string]any) {})
	assert.Equal(t, true, testkit.At(t, private.One(t, testkit.Subnetwork, "persia-prod"), "privateIpGoogleAccess"))
	nat := private.One(t, testkit.RouterNAT, "persia-prod")
	for path, want := range map[string]any{
		"natIpAllocateOption":           "AUTO_ONLY",
		"sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
		"logConfig.filter":              "ERRORS_ONLY",
	} {
		assert.Equal(t, want, testkit.At(t, nat, path), path)
	}
	assert.Contains(t, private.One(t, testkit.Cluster, "persia-prod").Dependencies(), nat.URN)

}

// TestKeyGrants: who uses a key is granted it first.
func TestKeyGrants(t *testing.T) {
	const secrets, bootDisks = aKey + "/container-engine-robot", aKey + "/compute-system"
	members := map[string]string{
		secrets:   "serviceAccount:service-123456789012@container-engine-robot.iam.gserviceaccount.com",
		bootDisks: "serviceAccount:service-123456789012@compute-system.iam.gserviceaccount.com",
	}
	for name, test := range map[string]struct {
		encryption map[string]any
		grants     []string
	}{
		"none":       {map[string]any{}, nil},
		"Secrets":    {map[string]any{"secrets": aKey}, []string{secrets}},
		"boot disks": {map[string]any{"bootDisks": aKey}, []string{bootDisks}},
		"both":       {map[string]any{"secrets": aKey, "bootDisks": aKey}, []string{secrets, bootDisks}},
	} {
		t.Run(name, func(t *testing.T) {
			prod := prodWith(t, func(cluster map[string]any) { cluster["encryption"] = test.encryption })
			assert.Len(t, prod.Some(testkit.KeyGrant), len(test.grants))
			for _, name := range test.grants {
				grant := prod.One(t, testkit.KeyGrant, name)
				assert.Equal(t, aKey, testkit.At(t, grant, "cryptoKeyId"))
				assert.Equal(t, "roles/cloudkms.cryptoKeyEncrypterDecrypter", testkit.At(t, grant, "role"))
				assert.Equal(t, members[name], testkit.At(t, grant, "member"))
				assert.Contains(t, prod.One(t, testkit.Cluster, "persia-prod").Dependencies(), grant.URN)
			}
		})
	}
}

// prodWith is prod, but protected, and without storage.
func prodWith(t testing.TB, change func(cluster map[string]any)) *testkit.Recorder {
	t.Helper()
	configuration := programtest.ReadStack(t, "prod")
	programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
		delete(cluster.(map[string]any), "deletionProtection")
		change(cluster.(map[string]any))
	})
	configuration["persia:storage"] = "[]"
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) {
		delete(jobs.([]any)[0].(map[string]any), "mounts")
	})
	return programtest.MustDeploy(t, configuration)
}

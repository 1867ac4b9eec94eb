package google

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replays are the recorded clusters and pools, and what else a program makes. Each
// request is sent as it was recorded, and the answer must have the fields that were
// recorded.
var replays = map[string]struct {
	kind, name string
	// from is the part of the request and the answer that is a resource.
	from string
	// then are updates after the creation.
	then func(*Cloud, string) error
	// differs are the paths that differ, and why.
	differs map[string]string
}{
	"container.cluster.zonal": {kind: "container.cluster", name: "projects/${projectId}/locations/us-central1-a/clusters/cluster-sample-${uniqueId}", differs: map[string]string{
		"releaseChannel.channel":                            "STABLE because the version that was asked for was that channel's; the simulation has no list of versions",
		"addonsConfig.nodeReadinessConfig":                  "1.35.3 and later: the defaults are those of the newer recording",
		"anonymousAuthenticationConfig.mode":                "LIMITED from 1.35 on: the defaults are those of the newer recording",
		"currentNodeCount":                                  "the pool that a cluster is created with is not simulated",
		"instanceGroupUrls":                                 "the pool that a cluster is created with is not simulated",
		"nodePools[0].selfLink":                             "the pool that a cluster is created with is not simulated",
		"ipAllocationPolicy.defaultPodIpv4RangeUtilization": "a measurement",
	}},
	"container.cluster.regional": {kind: "container.cluster", name: "projects/${projectId}/locations/us-west2/clusters/containercluster-${uniqueId}", differs: map[string]string{
		"currentNodeCount":  "the pool that a cluster is created with is not simulated",
		"instanceGroupUrls": "the pool that a cluster is created with is not simulated",
		"nodePools":         "the pool that a cluster is created with is not simulated",
		"nodeConfig":        "the pool that a cluster is created with is not simulated",
	}},
	"container.cluster.private.masterIpv4CidrBlock": {kind: "container.cluster", name: "projects/${projectId}/locations/northamerica-northeast1-a/clusters/containercluster-${uniqueId}"},
	"container.cluster.private.privateEndpointSubnetwork": {kind: "container.cluster", name: "projects/${projectId}/locations/northamerica-northeast2-a/clusters/c", differs: map[string]string{
		"*": "set through controlPlaneEndpointsConfig, which the provider's 7.38 cannot send",
	}},
	"container.cluster.dnsEndpointOnly": {kind: "container.cluster", name: "projects/${projectId}/locations/northamerica-south1-a/clusters/c", differs: map[string]string{
		"*": "set through controlPlaneEndpointsConfig, which the provider's 7.38 cannot send",
	}},
	"container.cluster.privateEndpointOnly": {kind: "container.cluster", name: "projects/${projectId}/locations/northamerica-south1-b/clusters/c", differs: map[string]string{
		"*": "an update through controlPlaneEndpointsConfig, whose request is not recorded",
	}},
	"container.cluster.databaseEncryption.encrypted": {kind: "container.cluster", name: "projects/${projectId}/locations/us-central1/clusters/c"},
	"container.cluster.databaseEncryption.decryptedAgain": {kind: "container.cluster", name: "projects/${projectId}/locations/us-central1/clusters/c",
		then: func(c *Cloud, name string) error {
			key := text(Answers()["container.cluster.databaseEncryption.encrypted"].Request, "databaseEncryption.keyName")
			return c.Update("container.cluster", name, "databaseEncryption", Body{"state": "DECRYPTED", "keyName": key})
		}},
	"container.cluster.secondaryRanges": {kind: "container.cluster", name: "projects/${projectId}/locations/us-central1/clusters/containercluster-${uniqueId}", differs: map[string]string{
		"ipAllocationPolicy.additionalIpRangesConfigs":      "came from a later update, whose request is not recorded",
		"ipAllocationPolicy.defaultPodIpv4RangeUtilization": "a measurement",
		"locations": "in no order, and not the same three zones in every region",
	}},
	"container.cluster.dataplaneV2": {kind: "container.cluster", name: "projects/${projectId}/locations/us-central1/clusters/c"},
	"container.cluster.addonsOff": {kind: "container.cluster", name: "projects/${projectId}/locations/us-central1-a/clusters/containercluster-${uniqueId}", differs: map[string]string{
		"addonsConfig.cloudRunConfig.loadBalancerType": "Cloud Run for Anthos is not something that the program uses",
	}},
	"container.cluster.addonsOn": {kind: "container.cluster", name: "projects/${projectId}/locations/us-central1-a/clusters/containercluster-${uniqueId}", differs: map[string]string{
		"*": "the update's request is not recorded",
	}},
	"container.cluster.autoprovisioning": {kind: "container.cluster", name: "projects/${projectId}/locations/us-central1/clusters/c", differs: map[string]string{
		"autoscaling.autoprovisioningNodePoolDefaults.oauthScopes":              "the program does not turn automatic provisioning on",
		"autoscaling.autoprovisioningNodePoolDefaults.minCpuPlatform":           "the program does not turn automatic provisioning on",
		"autoscaling.autoprovisioningNodePoolDefaults.upgradeSettings.strategy": "the program does not turn automatic provisioning on",
	}},
	"container.cluster.maintenancePolicy":    {kind: "container.cluster", name: "projects/${projectId}/locations/us-central1/clusters/c"},
	"container.nodePool.localSsd":            {kind: "container.nodePool", name: poolName, differs: poolDiffers},
	"container.nodePool.autoscalingAndTaint": {kind: "container.nodePool", name: poolName, differs: poolDiffers},
	"container.nodePool.kubeletConfig":       {kind: "container.nodePool", name: poolName},
	"container.nodePool.queuedProvisioning": {kind: "container.nodePool", name: poolName, differs: map[string]string{
		"autoscaling.locationPolicy": "the mock that answered leaves it out, and the real answers have it",
	}},
	"container.nodePool.regional": {kind: "container.nodePool", name: poolName, differs: map[string]string{
		"*": "no request is recorded",
	}},
	"compute.network":    {kind: "compute.network", name: "projects/${projectId}/global/networks/${networkID}"},
	"compute.subnetwork": {kind: "compute.subnetwork", name: "projects/${projectId}/regions/us-central1/subnetworks/${subnetworkID}", differs: map[string]string{"gatewayAddress": "rewritten in the recording"}},
	"compute.router":     {kind: "compute.router", name: "projects/${projectId}/regions/us-central1/routers/${routerID}"},
	"compute.router.nat": {kind: "compute.router.nat", name: "${projectId}/us-central1/router/computerouternat-${uniqueId}", from: "nats", differs: map[string]string{
		"natIps": "a URL of the beta API", "rules": "URLs of the beta API", "subnetworks": "URLs of the beta API",
	}},
	"compute.router.natAutomatic": {kind: "compute.router.nat", name: "${projectId}/us-central1/router/computerouternat-${uniqueId}", from: "nats"},
	"compute.disk": {kind: "compute.disk", name: "projects/${projectId}/zones/us-central1-a/disks/${diskID}", differs: map[string]string{
		"type": "a URL of the beta API",
	}},
	"compute.regionDisk": {kind: "compute.regionDisk", name: "projects/${projectId}/regions/us-central1/disks/${diskID}", differs: map[string]string{
		"type": "a URL of the beta API", "replicaZones": "URLs of the beta API",
	}},
	"file.instance": {kind: "file.instance", name: "projects/${projectId}/locations/us-central1-b/instances/filestoreinstance-${uniqueId}", differs: map[string]string{"networks": "addresses are rewritten in the recording"}},
	"gkebackup.backupPlan": {kind: "gkebackup.backupPlan", name: "projects/${projectId}/locations/us-central1/backupPlans/gkebackupbackupplan-minimal-${uniqueId}", differs: map[string]string{
		"state": "READY, which the recording has as the number 3", "uid": "random",
	}},
	"storage.bucket.autoclass": {kind: "storage.bucket", name: "storagebucket-acdefault-${uniqueId}"},
	"storage.bucket":           {kind: "storage.bucket", name: "storagebucket-acdisabled-${uniqueId}"},
	"iam.serviceAccount": {kind: "iam.serviceAccount", name: "projects/${projectId}/serviceAccounts/gsa-${uniqueId}@${projectId}.iam.gserviceaccount.com", from: "serviceAccount", differs: map[string]string{
		"uniqueId": "random", "oauth2ClientId": "random",
	}},
}

const poolName = "projects/${projectId}/locations/us-central1-a/clusters/cluster-sample-${uniqueId}/nodePools/nodepool-sample-${uniqueId}"

var poolDiffers = map[string]string{
	"config.nodeImageConfig":         "the name of an image, in pools since June 2026",
	"version":                        "the cluster's, which the recording does not have",
	"networkConfig.podIpv4CidrBlock": "rewritten in the recording",
	"podIpv4CidrSize":                "",
}

// notReplayed lists the recordings that the simulation cannot reproduce, with the reason.
var notReplayed = map[string]string{
	"container.operation":                    "operations are over at once",
	"compute.operation":                      "operations are over at once",
	"file.operation":                         "operations are over at once",
	"gkebackup.operation":                    "operations are over at once",
	"compute.instanceGroupManager":           "nodes are the control plane's",
	"compute.subnetwork.afterCluster":        "TestACluster",
	"compute.router.natPrivate":              "the program has no private gateway",
	"compute.address.regional":               "the program has no address",
	"compute.firewall":                       "the program has no firewall rule",
	"storage.bucket.noSoftDelete":            "after an update that is not recorded in whole",
	"cloudkms.cryptoKey":                     "the program makes no key",
	"cloudkms.cryptoKey.iamPolicy":           "members of policies are resources of their own",
	"cloudresourcemanager.project.iamPolicy": "members of policies are resources of their own",
}

func TestEveryRecordingIsReplayed(t *testing.T) {
	for name := range Answers() {
		_, replayed := replays[name]
		_, left := notReplayed[name]
		assert.NotEqual(t, replayed, left, name)
	}
}

func TestReplay(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(replays)) {
		replay, recorded := replays[name], Clone(Answers()[name])
		if replay.differs["*"] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := New(t.TempDir(), Settings{})
			parents(t, c, replay.kind, replay.name, recorded)
			request, want := part(recorded.Request, replay.from), part(recorded.Get, replay.from)
			if replay.from == "serviceAccount" {
				want = recorded.Get
			}
			if request == nil {
				request = Body{}
			}
			require.NoError(t, c.Create(replay.kind, replay.name, request))
			if replay.then != nil {
				require.NoError(t, replay.then(c, replay.name))
			}
			answer, err := c.Get(replay.kind, replay.name)
			require.NoError(t, err)
			for _, path := range differences("", want, answer) {
				if !explained(replay.differs, path) {
					wanted, _ := Lookup(want, path)
					got, _ := Lookup(answer, path)
					t.Errorf("%s: recorded %v, simulated %v", path, wanted, got)
				}
			}
		})
	}
}

// parents creates the resources that a resource needs.
func parents(t *testing.T, c *Cloud, kind, name string, recorded Recorded) {
	t.Helper()
	make := func(kind, name string, request Body) { require.NoError(t, c.Create(kind, name, request)) }
	switch kind {
	case "container.nodePool":
		make("container.cluster", clusterOf(name), Body{})
	case "container.cluster":
		network, subnetwork := networksOfCluster(name, recorded.Request)
		make("compute.network", network, Body{})
		make("compute.subnetwork", subnetwork, Body{"network": network, "ipCidrRange": "10.0.0.0/20", "secondaryIpRanges": rangesIn(recorded.Get)})
	case "compute.subnetwork", "compute.router":
		make("compute.network", text(recorded.Request, "network"), Body{})
	case "compute.router.nat":
		make("compute.router", routerOf(name), Body{"network": defaultNetwork})
	}
}

// rangesIn returns the secondary ranges that a recorded cluster uses.
func rangesIn(cluster Body) []any {
	ranges := []any{}
	for _, of := range []string{"cluster", "services"} {
		if name := text(cluster, "ipAllocationPolicy."+of+"SecondaryRangeName"); name != "" {
			ranges = append(ranges, Body{"rangeName": name, "ipCidrRange": text(cluster, "ipAllocationPolicy."+of+"Ipv4CidrBlock")})
		}
	}
	return ranges
}

// part returns the element of a list, or the object, in a body.
func part(body Body, from string) Body {
	switch value := body[from].(type) {
	case []any:
		return value[0].(Body)
	case Body:
		return value
	default:
		return body
	}
}

// differences returns the paths at which an answer differs from the recording. A text with
// placeholders matches any text.
func differences(at string, want, got any) []string {
	wanted, isObject := want.(Body)
	if !isObject {
		if equal(want, got) {
			return nil
		}
		return []string{at}
	}
	object, _ := got.(Body)
	var paths []string
	if len(wanted) == 0 && object == nil {
		paths = append(paths, at)
	}
	for name, value := range wanted {
		path := strings.TrimPrefix(at+"."+name, ".")
		paths = append(paths, differences(path, value, object[name])...)
	}
	sort.Strings(paths)
	return paths
}

// volatile are the placeholders of times and random values, and of the certificate
// of a control plane, which the provider fills in.
var volatile = []string{"${time}", "${expireTime}", "${etag}", "${id}", "${fingerprint}", "${resourceVersion}", "${clusterCaCertificate}"}

func equal(want, got any) bool {
	text, isText := want.(string)
	list, isList := want.([]any)
	others, _ := got.([]any)
	switch {
	case slices.Contains(volatile, text):
		return true
	case isText && strings.Contains(text, "${"):
		return fmt.Sprint(got) != "" && got != nil
	case isList && len(list) == len(others):
		for i := range list {
			if !equal(list[i], others[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(want, got)
	}
}

func explained(differs map[string]string, path string) bool {
	for prefix := range differs {
		if path == prefix || strings.HasPrefix(path, prefix+".") {
			return true
		}
	}
	return false
}

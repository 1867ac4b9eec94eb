package google

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// replays are the recordings. The answer to a recorded request must have the recorded fields.
var replays = map[string]struct {
	name string
	// from is the part of the request and the answer that is a resource.
	from string
	// then are updates after the creation.
	then func(*Cloud, string) error
	// differs are the paths that differ, and why.
	differs map[string]string
}{
	"container.cluster.regional": {name: "projects/p/locations/us-west2/clusters/c", differs: map[string]string{
		"currentNodeCount":  "the pool that a cluster is created with is not simulated",
		"instanceGroupUrls": "the pool that a cluster is created with is not simulated",
		"nodePools":         "the pool that a cluster is created with is not simulated",
		"nodeConfig":        "the pool that a cluster is created with is not simulated",
	}},
	"container.cluster.private.masterIpv4CidrBlock":  {name: "projects/p/locations/northamerica-northeast1-a/clusters/c"},
	"container.cluster.databaseEncryption.encrypted": {name: regional},
	"container.cluster.databaseEncryption.decryptedAgain": {name: regional, then: func(c *Cloud, name string) error {
		key := Text(answers().Resources["container.cluster.databaseEncryption.encrypted"].Request, "databaseEncryption.keyName")
		return c.Update("container.cluster", name, "databaseEncryption", Body{"state": "DECRYPTED", "keyName": key})
	}},
	"container.cluster.secondaryRanges": {name: regional, differs: map[string]string{
		"ipAllocationPolicy.additionalIpRangesConfigs":      "came from a later update, whose request is not recorded",
		"ipAllocationPolicy.defaultPodIpv4RangeUtilization": "a measurement",
		"locations": "in no order, and not the same three zones in every region",
	}},
	"container.cluster.dataplaneV2": {name: regional},
	"container.cluster.addonsOff": {name: "projects/p/locations/us-central1-a/clusters/c", differs: map[string]string{
		"addonsConfig.cloudRunConfig.loadBalancerType": "Cloud Run for Anthos is not something that the program uses",
	}},
	"container.cluster.maintenancePolicy":    {name: regional},
	"container.nodePool.localSsd":            {name: poolName},
	"container.nodePool.autoscalingAndTaint": {name: poolName},
	"container.nodePool.kubeletConfig":       {name: poolName},
	"container.nodePool.queuedProvisioning": {name: poolName, differs: map[string]string{
		"autoscaling.locationPolicy": "the mock that answered leaves it out, and the real answers have it",
	}},
	"compute.network":             {name: "projects/p/global/networks/n"},
	"compute.subnetwork":          {name: "projects/p/regions/us-central1/subnetworks/s", differs: map[string]string{"gatewayAddress": "rewritten in the recording"}},
	"compute.router":              {name: "projects/p/regions/us-central1/routers/r"},
	"compute.router.natAutomatic": {name: "p/us-central1/router/n", from: "nats"},
	"compute.disk":                {name: "projects/p/zones/us-central1-a/disks/d", differs: map[string]string{"type": "a URL of the beta API"}},
	"compute.regionDisk": {name: "projects/p/regions/us-central1/disks/d", differs: map[string]string{
		"type": "a URL of the beta API", "replicaZones": "URLs of the beta API",
	}},
	"file.instance":  {name: "projects/p/locations/us-central1-b/instances/i", differs: map[string]string{"networks": "addresses are rewritten in the recording"}},
	"storage.bucket": {name: "b"},
	"iam.serviceAccount": {name: "projects/p/serviceAccounts/a@p.iam.gserviceaccount.com", from: "serviceAccount", differs: map[string]string{
		"uniqueId": "random", "oauth2ClientId": "random",
	}},
}

// differs are the paths that differ in all recordings of clusters and pools.
var differs = map[string]string{
	"controlPlaneEndpointsConfig":    "the provider's 7.38 cannot send or read it",
	"selfLink":                       "the program has no zonal clusters",
	"masterAuthorizedNetworksConfig": "the program always sends it",
	"config.nodeImageConfig":         "the name of an image, in pools since June 2026",
	"version":                        "the cluster's, which the recording does not have",
	"networkConfig.podIpv4CidrBlock": "rewritten in the recording",
	"podIpv4CidrSize":                "rewritten in the recording",
}

const (
	regional = "projects/p/locations/us-central1/clusters/c"
	poolName = "projects/p/locations/us-central1-a/clusters/c/nodePools/n"
)

// kindOf returns the kind of a recording, whose name begins with it.
func kindOf(recording string) string {
	longest := ""
	for kind := range kinds {
		if strings.HasPrefix(recording, kind) && len(kind) > len(longest) {
			longest = kind
		}
	}
	return longest
}

func TestReplay(t *testing.T) {
	for name := range answers().Resources {
		t.Run(name, func(t *testing.T) {
			replay, exists := replays[name]
			require.True(t, exists, "write how to replay it")
			kind, recorded := kindOf(name), Clone(answers().Resources[name])
			c := New(t.TempDir())
			parents(t, c, kind, replay.name, recorded)
			request, want := part(recorded.Request, replay.from), part(recorded.Get, replay.from)
			if request == nil {
				request = Body{}
			}
			require.NoError(t, c.Create(kind, replay.name, request))
			if replay.then != nil {
				require.NoError(t, replay.then(c, replay.name))
			}
			answer := testkit.Must(c.Get(kind, replay.name))(t)
			for _, path := range differences("", want, answer) {
				if !explained(replay.differs, path) && !(kinds[kind].gke && explained(differs, path)) {
					wanted, _ := Lookup(want, path)
					got, _ := Lookup(answer, path)
					t.Errorf("%s: recorded %v, simulated %v", path, wanted, got)
				}
			}
		})
	}
}

// parents keeps the resources that a resource needs.
func parents(t *testing.T, c *Cloud, kind, name string, recorded Recorded) {
	t.Helper()
	keep := func(kind, name string, body Body) { require.NoError(t, c.write(kind, name, body)) }
	switch kind {
	case "container.nodePool":
		require.NoError(t, c.Create("container.cluster", ClusterOf(name, nil), Body{}))
	case "container.cluster":
		if network := Text(recorded.Request, "network"); network != "" {
			keep("compute.network", networkOf(name, network), Body{})
		}
		subnetwork := cmp.Or(Text(recorded.Request, "subnetwork"), "projects/p/regions/us-central1/subnetworks/default")
		keep("compute.subnetwork", subnetwork[strings.Index(subnetwork, "projects/"):], Body{"secondaryIpRanges": rangesIn(recorded.Get)})
	case "compute.router.nat":
		keep("compute.router", routerOf(name, nil), Body{})
	case "file.instance":
		keep("compute.network", "projects/p/global/networks/${networkID}", Body{})
	default:
		keep("compute.network", networkOf(name, Text(recorded.Request, "network")), Body{})
	}
}

// rangesIn returns the secondary ranges that a recorded cluster uses.
func rangesIn(cluster Body) []any {
	found := []any{}
	for _, of := range []string{"cluster", "services"} {
		if name := Text(cluster, "ipAllocationPolicy."+of+"SecondaryRangeName"); name != "" {
			found = append(found, Body{"rangeName": name, "ipCidrRange": Text(cluster, "ipAllocationPolicy."+of+"Ipv4CidrBlock")})
		}
	}
	return found
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

// differences returns the paths at which an answer differs from the recording, where placeholders match any text.
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
		paths = append(paths, differences(strings.TrimPrefix(at+"."+name, "."), value, object[name])...)
	}
	sort.Strings(paths)
	return paths
}

// volatile are placeholders for times, random values, and a control plane's certificate, from the provider.
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

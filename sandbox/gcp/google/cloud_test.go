package google

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"persia/internal/testkit"
)

// TestCommandsShareAFolder: the commands of several stacks create and delete a bucket at the same time. The look
// whether it exists, and its creation, are one step, and the last deletion removes the folders.
func TestCommandsShareAFolder(t *testing.T) {
	const commands, rounds = 4, 5
	parent := t.TempDir()
	dir := filepath.Join(parent, "storage")
	for range rounds {
		var group errgroup.Group
		created := make([]bool, commands)
		for command := range commands {
			group.Go(func() error {
				err := New(dir).Create("storage.bucket", "checkpoints", Body{"location": "EU"})
				created[command] = err == nil
				if err != nil && assert.ErrorContains(t, err, "already exists") {
					err = nil
				}
				return err
			})
		}
		require.NoError(t, group.Wait())
		made := 0
		for _, was := range created {
			if was {
				made++
			}
		}
		assert.Equal(t, 1, made)
		for range commands {
			group.Go(func() error { return New(dir).Delete("storage.bucket", "checkpoints") })
		}
		require.NoError(t, group.Wait())
	}
	assert.Empty(t, testkit.Must(os.ReadDir(parent))(t), "neither the folder nor the lock stays")
}

// world is a cloud with a cluster in its network, and what goes with them.
func world(t *testing.T) *Cloud {
	t.Helper()
	c := New(t.TempDir())
	for _, r := range []struct {
		kind, name string
		request    Body
	}{
		{"compute.network", network, Body{}},
		{"compute.subnetwork", subnetwork, Body{"network": network, "ipCidrRange": "10.0.0.0/20", "secondaryIpRanges": ranges("10.4.0.0/14")}},
		{"compute.router", router, Body{"network": network}},
		{"compute.disk", "projects/p/zones/us-central1-a/disks/d", Body{"sizeGb": 100.0}},
		{"file.instance", filer, share("ZONAL", 1024)},
		{"container.cluster", cluster, Body{"network": network, "subnetwork": subnetwork}},
		{"container.nodePool", cluster + "/nodePools/system", Body{"config": Body{"machineType": "e2-standard-4"}}},
	} {
		require.NoError(t, c.Create(r.kind, r.name, r.request), r.name)
	}
	return c
}

const (
	network    = "projects/p/global/networks/n"
	subnetwork = "projects/p/regions/us-central1/subnetworks/s"
	router     = "projects/p/regions/us-central1/routers/r"
	cluster    = "projects/p/locations/us-central1/clusters/c"
	filer      = "projects/p/locations/us-central1-a/instances/i"
)

func ranges(pods string) []any {
	return []any{Body{"rangeName": "pods", "ipCidrRange": pods}, Body{"rangeName": "services", "ipCidrRange": "10.8.0.0/20"}}
}

// key is a key of Cloud KMS in a location.
func key(location string) string {
	return "projects/p/locations/" + location + "/keyRings/r/cryptoKeys/k"
}

// share is an instance with a capacity in GiB.
func share(tier string, gib int, name ...string) Body {
	name = append(name, "s")
	return Body{"networks": []any{Body{"network": network}}, "tier": tier, "fileShares": []any{Body{"name": name[0], "capacityGb": gib}}}
}

// TestRefusals: Google refuses what cannot be, and what it would have to break.
func TestRefusals(t *testing.T) {
	create := func(kind, name string, request Body) func(*Cloud) error {
		return func(c *Cloud) error { return c.Create(kind, name, request) }
	}
	update := func(kind, name, field string, value any) func(*Cloud) error {
		return func(c *Cloud) error { return c.Update(kind, name, field, value) }
	}
	remove := func(kind, name string) func(*Cloud) error {
		return func(c *Cloud) error { return c.Delete(kind, name) }
	}
	second := func(request Body) func(*Cloud) error {
		return create("container.cluster", "projects/p/locations/us-central1/clusters/second", request)
	}
	pool := func(config Body) func(*Cloud) error {
		return create("container.nodePool", cluster+"/nodePools/p", Body{"config": config})
	}
	member := func(of string) func(*Cloud) error {
		return create("iam.member", "b/data/roles/r/"+of, Body{"member": of})
	}
	enabled := func(components ...any) Body { return Body{"componentConfig": Body{"enableComponents": components}} }
	excluded := func(end string) Body {
		return Body{"window": Body{"maintenanceExclusions": Body{"x": Body{"startTime": "2026-01-01T00:00:00Z", "endTime": end}}}}
	}
	pod := "principal://iam.googleapis.com/projects/" + ProjectNumber + "/locations/global/workloadIdentityPools/p.svc.id.goog/subject/ns/persia/sa/job"
	agent := "serviceAccount:service-" + ProjectNumber + "@cloud-filer.iam.gserviceaccount.com"
	for name, c := range map[string]struct {
		first, do func(*Cloud) error
		want      string
	}{
		"a name that is taken":               {nil, create("compute.router", router, Body{"network": network}), "Error 409: The resource '" + router + "' already exists, alreadyExists"},
		"a resource that is gone":            {nil, update("compute.router", router+"2", "description", "d"), "Error 404: The resource '" + router + "2' was not found, notFound"},
		"an update that says nothing":        {nil, update("container.cluster", cluster, "releaseChannel", nil), "Error 400: Must specify a field to update., badRequest"},
		"another kind":                       {nil, create("compute.address", "a", nil), "has no compute.address"},
		"a subnetwork without its network":   {nil, create("compute.subnetwork", subnetwork+"2", Body{"network": network + "2", "ipCidrRange": "10.0.0.0/20"}), "Error 404: The resource '" + network + "2' was not found"},
		"an instance between two steps":      {nil, create("file.instance", filer+"2", share("ZONAL", 1500)), "Error 400: Invalid capacity 1500 GiB for tier ZONAL"},
		"an instance beyond its band":        {create("file.instance", filer+"2", share("ZONAL", 9216)), update("file.instance", filer+"2", "fileShares", share("ZONAL", 12800)["fileShares"]), "Invalid capacity 12800 GiB"},
		"a long share of a basic instance":   {nil, create("file.instance", filer+"2", share("BASIC_HDD", 1024, "shared_checkpoints")), "Invalid name of a file share: shared_checkpoints"},
		"a disk in no zone":                  {nil, create("compute.disk", "projects/p/zones/us-central1-d/disks/d", Body{"sizeGb": 100.0}), "Invalid value for field 'zone': 'us-central1-d'. Unknown zone"},
		"a disk with capital letters":        {nil, create("compute.disk", "projects/p/zones/us-central1-a/disks/Disk", Body{"sizeGb": 100.0}), "Invalid value for field 'resource.name': 'Disk'. Must be a match of regex '[a-z]("},
		"a disk with a key elsewhere":        {nil, create("compute.disk", "projects/p/zones/us-central1-a/disks/k", Body{"sizeGb": 100.0, "diskEncryptionKey": Body{"kmsKeyName": key("eu")}}), key("eu") + " is in eu, and must be in global or us-central1"},
		"a pool in no zone":                  {nil, create("container.nodePool", cluster+"/nodePools/p", Body{"config": Body{}, "locations": []any{"us-central1-d"}}), "Zone 'us-central1-d' does not exist"},
		"a name of 41 letters":               {nil, create("container.nodePool", cluster+"/nodePools/"+strings.Repeat("p", 41), Body{"config": Body{}}), "Must be a match of regex"},
		"A100s where there are none":         {nil, create("container.nodePool", cluster+"/nodePools/p", Body{"config": Body{"machineType": "a2-ultragpu-1g"}, "locations": []any{"us-central1-b"}}), `Error 400: Accelerator type "nvidia-a100-80gb" does not exist in zone us-central1-b (the`},
		"GPUs of an AI zone":                 {nil, create("container.nodePool", cluster+"/nodePools/p", Body{"config": Body{"machineType": "a2-ultragpu-1g"}, "locations": []any{"us-central1-ai1a"}}), ""},
		"a bucket in two regions":            {nil, create("storage.bucket", "b", Body{"location": "nam4", "encryption": Body{"defaultKmsKeyName": key("nam4")}}), ""},
		"no range":                           {nil, create("compute.subnetwork", subnetwork+"2", Body{"network": network}), "Invalid value for field 'resource.ipCidrRange': ''"},
		"a router without its network":       {nil, create("compute.router", router+"2", Body{"network": network + "2"}), network + "2' was not found"},
		"a gateway without its router":       {nil, create("compute.router.nat", "p/us-central1/r2/nat", Body{}), "routers/r2' was not found"},
		"a cluster without its network":      {nil, second(Body{"network": network + "2", "subnetwork": subnetwork}), network + "2' was not found"},
		"a cluster without its subnetwork":   {nil, second(Body{"network": network, "subnetwork": subnetwork + "2"}), subnetwork + "2' was not found"},
		"a subnetwork of another region":     {nil, second(Body{"network": network, "subnetwork": "projects/p/regions/us-east1/subnetworks/s"}), `does not exist in specified region "us-central1"`},
		"no such range of pods":              {nil, second(Body{"network": network, "subnetwork": subnetwork, "ipAllocationPolicy": Body{"clusterSecondaryRangeName": "pod"}}), `Pod secondary range "pod" not found in network "` + computeURL + network + `", subnetwork "s"., badRequest`},
		"no such range of services":          {nil, second(Body{"network": network, "subnetwork": subnetwork, "ipAllocationPolicy": Body{"servicesSecondaryRangeName": "service"}}), `Services secondary range "service" not found`},
		"pods with addresses of nodes":       {nil, create("compute.subnetwork", subnetwork+"2", Body{"network": network, "ipCidrRange": "10.4.0.0/20", "secondaryIpRanges": ranges("10.4.0.0/14")}), "'resource.secondaryIpRanges[0].ipCidrRange': '10.4.0.0/14'. Invalid IPCidrRange: 10.4.0.0/14 conflicts with existing subnetwork 's2' in region 'us-central1'., invalid"},
		"services with addresses of pods":    {nil, update("compute.subnetwork", subnetwork, "secondaryIpRanges", ranges("10.8.0.0/16")), "'resource.secondaryIpRanges[1].ipCidrRange': '10.8.0.0/20'. Invalid IPCidrRange: 10.8.0.0/20 conflicts"},
		"a control plane in pods":            {nil, second(Body{"network": network, "subnetwork": subnetwork, "privateClusterConfig": Body{"masterIpv4CidrBlock": "10.4.1.0/28"}}), "'10.4.1.0/28'. Invalid IPCidrRange: 10.4.1.0/28 conflicts"},
		"logs without those of the system":   {nil, second(Body{"loggingConfig": enabled("WORKLOADS")}), "SYSTEM_COMPONENTS must be enabled for other components of logging., badRequest"},
		"metrics without the system's":       {nil, update("container.cluster", cluster, "monitoringConfig", enabled("POD")), "SYSTEM_COMPONENTS must be enabled for other components of monitoring."},
		"an exclusion of 181 days":           {nil, update("container.cluster", cluster, "maintenancePolicy", excluded("2026-07-01T00:00:00Z")), `Maintenance exclusion "x" must not be longer than 180 days.`},
		"an exclusion of 180 days":           {nil, update("container.cluster", cluster, "maintenancePolicy", excluded("2026-06-30T00:00:00Z")), ""},
		"a range that a cluster uses":        {nil, update("compute.subnetwork", subnetwork, "secondaryIpRanges", ranges("10.12.0.0/14")), "already being used by '" + cluster + "'"},
		"a network that is used":             {nil, remove("compute.network", network), "The resource '" + network + "' is already being used by "},
		"a subnetwork that is used":          {nil, remove("compute.subnetwork", subnetwork), "is already being used by '" + cluster + "', resourceInUseByAnotherResource"},
		"a cluster with its pools":           {nil, remove("container.cluster", cluster), ""},
		"a pool that went with its cluster":  {remove("container.cluster", cluster), update("container.nodePool", cluster+"/nodePools/system", "version", "1"), "nodePools/system' was not found"},
		"a subnetwork after its cluster":     {remove("container.cluster", cluster), remove("compute.subnetwork", subnetwork), ""},
		"a pool without its cluster":         {remove("container.cluster", cluster), pool(Body{"machineType": "n2-standard-8"}), "The resource '" + cluster + "' was not found"},
		"a smaller disk":                     {nil, update("compute.disk", "projects/p/zones/us-central1-a/disks/d", "sizeGb", 50.0), "New disk size must be larger than current size"},
		"a disk beyond the sizes":            {nil, update("compute.disk", "projects/p/zones/us-central1-a/disks/d", "sizeGb", 70000.0), "The size of a pd-standard disk must be between 10 and 65536 GB"},
		"an account that does not exist":     {nil, member(agent), "Service account service-" + ProjectNumber + "@cloud-filer.iam.gserviceaccount.com does not exist"},
		"an account that was asked for":      {create("serviceusage.identity", "projects/p/services/file", Body{"service": "file.googleapis.com"}), member(agent), ""},
		"a service without an account":       {nil, create("serviceusage.identity", "projects/p/services/s", Body{"service": "s"}), "Service s has no identity"},
		"a pod before any Workload Identity": {nil, member(pod), "Identity Pool does not exist (p.svc.id.goog)"},
		"a pod with Workload Identity":       {update("container.cluster", cluster, "workloadIdentityConfig", Body{"workloadPool": "p.svc.id.goog"}), member(pod), ""},
		"a member with a long name":          {nil, member("user:" + strings.Repeat("a", 300)), ""},
		"a member that has access already":   {member("user:a@example.com"), member("user:a@example.com"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := world(t)
			if c.first != nil {
				require.NoError(t, c.first(cloud))
			}
			testkit.Fails(t, c.do(cloud), c.want)
		})
	}
}

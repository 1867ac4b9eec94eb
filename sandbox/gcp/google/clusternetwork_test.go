package google

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNetworkOfACluster: a cluster is in a network, a subnetwork and ranges that exist.
func TestNetworkOfACluster(t *testing.T) {
	const (
		cluster    = "projects/p/locations/us-central1-a/clusters/c"
		network    = "projects/p/global/networks/n"
		subnetwork = "projects/p/regions/us-central1/subnetworks/s"
		elsewhere  = "projects/p/regions/us-east1/subnetworks/s"
	)
	ranges := func(pods, services string) Body {
		return Body{"clusterSecondaryRangeName": pods, "servicesSecondaryRangeName": services}
	}
	for name, c := range map[string]struct {
		request Body
		err     string
	}{
		"nothing named":             {request: Body{}},
		"the default network":       {request: Body{"network": "projects/p/global/networks/default", "subnetwork": "default"}},
		"by path":                   {request: Body{"network": network, "subnetwork": subnetwork, "ipAllocationPolicy": ranges("pods", "services")}},
		"by URL":                    {request: Body{"network": computeURL + network, "subnetwork": computeURL + subnetwork, "ipAllocationPolicy": ranges("pods", "services")}},
		"by name":                   {request: Body{"network": "n", "subnetwork": "s", "ipAllocationPolicy": ranges("pods", "services")}},
		"ranges by their size":      {request: Body{"network": "n", "subnetwork": "s", "ipAllocationPolicy": Body{"clusterIpv4CidrBlock": "/20"}}},
		"no such network":           {request: Body{"network": "m", "subnetwork": "s"}, err: `Error 400: Project "p" has no network named "m"., badRequest`},
		"another project's network": {request: Body{"network": "projects/host/global/networks/n"}, err: `Error 400: Project "host" has no network named "n"., badRequest`},
		"no such subnetwork": {
			request: Body{"network": "n", "subnetwork": "projects/p/regions/us-central1/subnetworks/t"},
			err:     `Error 400: Subnet "projects/p/regions/us-central1/subnetworks/t" does not exist in specified region "us-central1"., badRequest`,
		},
		"a subnetwork of another region": {
			request: Body{"network": "n", "subnetwork": elsewhere},
			err:     `Error 400: Subnet "` + elsewhere + `" does not exist in specified region "us-central1"., badRequest`,
		},
		"no such range of pods": {
			request: Body{"network": "n", "subnetwork": "s", "ipAllocationPolicy": ranges("pod", "services")},
			err:     `Error 400: Pod secondary range "pod" not found in network "` + computeURL + network + `", subnetwork "s"., badRequest`,
		},
		"no such range of services": {
			request: Body{"network": "n", "subnetwork": "s", "ipAllocationPolicy": ranges("pods", "service")},
			err:     `Error 400: Services secondary range "service" not found in network "` + computeURL + network + `", subnetwork "s"., badRequest`,
		},
		"a range of the default network": {
			request: Body{"ipAllocationPolicy": ranges("pods", "services")},
			err:     `Pod secondary range "pods" not found in network "` + computeURL + `projects/p/global/networks/default", subnetwork "default"., badRequest`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := New(t.TempDir(), Settings{})
			require.NoError(t, cloud.Create("compute.network", network, Body{}))
			for _, path := range []string{subnetwork, elsewhere} {
				require.NoError(t, cloud.Create("compute.subnetwork", path, Body{
					"network": network, "ipCidrRange": "10.0.0.0/20",
					"secondaryIpRanges": []any{Body{"rangeName": "pods", "ipCidrRange": "10.4.0.0/14"}, Body{"rangeName": "services", "ipCidrRange": "10.8.0.0/20"}},
				}))
			}
			err := cloud.Create("container.cluster", cluster, c.request)
			if c.err != "" {
				assert.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.NoError(t, cloud.Update("container.cluster", cluster, "releaseChannel", Body{"channel": "STABLE"}))
		})
	}
}

// TestNetworkOfItsParts: no resource in a network is created before the network.
func TestNetworkOfItsParts(t *testing.T) {
	for kind, name := range map[string]string{
		"compute.subnetwork": "projects/p/regions/us-central1/subnetworks/s",
		"compute.router":     "projects/p/regions/us-central1/routers/r",
	} {
		t.Run(kind, func(t *testing.T) {
			cloud, request := New(t.TempDir(), Settings{}), Body{"network": "projects/p/global/networks/n", "ipCidrRange": "10.0.0.0/20"}
			assert.EqualError(t, cloud.Create(kind, name, request),
				"googleapi: Error 404: The resource 'projects/p/global/networks/n' was not found, notFound")
			require.NoError(t, cloud.Create("compute.network", "projects/p/global/networks/n", Body{}))
			require.NoError(t, cloud.Create(kind, name, request))
			assert.NoError(t, cloud.Update(kind, name, "description", "changed"))
		})
	}
}

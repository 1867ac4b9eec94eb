package gke_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
)

// TestRanges: the range of the nodes only grows, because any other would replace the cluster under the objects in the
// state, where an update that failed may have grown it. A cluster keeps its other ranges.
func TestRanges(t *testing.T) {
	subnetwork := func(name, project, region, cidr string) settings {
		return settings{
			"urn:pulumi:stack::persia::persia:gke:Cluster$gcp:compute/subnetwork:Subnetwork::" + name: settings{
				"type": "gcp:compute/subnetwork:Subnetwork", "outputs": settings{"name": name, "project": project, "region": region, "ipCidrRange": cidr,
					"secondaryIpRanges": []any{settings{"rangeName": "pods", "ipCidrRange": "10.64.0.0/14"}, settings{"rangeName": "services", "ipCidrRange": "10.1.0.0/20"}}}},
			"urn:pulumi:stack::persia::gcp:container/cluster:Cluster::" + name: settings{
				"outputs": settings{"name": name, "project": project, "location": region}},
		}
	}
	const contains = "or a larger range that contains it"
	had := subnetwork("persia-dev", "my-project", "us-central1", "10.0.0.0/20")
	withoutCluster := maps.Clone(had)
	maps.DeleteFunc(withoutCluster, func(urn string, _ any) bool { return strings.Contains(urn, ":Cluster::") })
	// in has a setting by its name in persia:cluster.
	type in = settings
	for name, c := range map[string]struct {
		state  settings
		wanted in
		// refused is the field that is refused, and says a part of the reason.
		refused, says string
	}{
		"before the first update":           {nil, in{"network.nodes": "10.8.0.0/20"}, "", ""},
		"by default":                        {had, nil, "", ""},
		"larger":                            {had, in{"network.nodes": "10.0.0.0/19"}, "", ""},
		"moved":                             {had, in{"network.nodes": "10.8.0.0/20"}, "network.nodes", contains},
		"larger elsewhere":                  {had, in{"network.nodes": "10.32.0.0/19"}, "network.nodes", contains},
		"smaller":                           {had, in{"network.nodes": "10.0.0.0/21"}, "network.nodes", contains},
		"grown before, by default":          {subnetwork("persia-dev", "my-project", "us-central1", "10.0.0.0/19"), nil, "network.nodes", contains},
		"moved with another name":           {subnetwork("persia-old", "my-project", "us-central1", "10.0.0.0/20"), in{"network.nodes": "10.8.0.0/20"}, "", ""},
		"moved with another project":        {subnetwork("persia-dev", "other", "us-central1", "10.0.0.0/20"), in{"network.nodes": "10.8.0.0/20"}, "", ""},
		"moved with another region":         {subnetwork("persia-dev", "my-project", "us-east1", "10.0.0.0/20"), in{"network.nodes": "10.8.0.0/20"}, "", ""},
		"larger for pods":                   {had, in{"network.pods": "10.64.0.0/13"}, "network.pods", "is 10.64.0.0/14 in the cluster, which keeps that range"},
		"another for services":              {had, in{"network.services": "10.1.16.0/20"}, "network.services", "is 10.1.0.0/20 in the cluster"},
		"another with another name":         {had, in{"network.pods": "10.64.0.0/13", "name": "other"}, "", ""},
		"larger for pods, before a cluster": {withoutCluster, in{"network.pods": "10.64.0.0/13"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := programtest.Deploy(t, programtest.ReadStack(t, "Pulumi.dev.yaml", ofCluster(c.wanted)), upBefore(c.state))
			if c.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "persia:cluster."+c.refused+": Invalid value")
			assert.ErrorContains(t, err, c.says)
		})
	}
}

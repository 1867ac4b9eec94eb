package gke_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestRangeOfNodesOnlyGrows checks that every other range is refused, because it would replace the
// cluster under the objects in the state. The range in the state counts: an update that failed may
// have grown it.
func TestRangeOfNodesOnlyGrows(t *testing.T) {
	subnetwork := func(name, project, region, cidr string) settings {
		return settings{
			"urn:pulumi:stack::persia::persia:gke:Cluster$gcp:compute/subnetwork:Subnetwork::" + name: settings{
				"type": "gcp:compute/subnetwork:Subnetwork", "outputs": settings{"name": name, "project": project, "region": region, "ipCidrRange": cidr}},
		}
	}
	had := subnetwork("persia-dev", "my-project", "us-central1", "10.0.0.0/20")
	for name, c := range map[string]struct {
		state   settings
		wanted  string
		refused bool
	}{
		"before the first update":    {nil, "10.8.0.0/20", false},
		"as it was":                  {had, "10.0.0.0/20", false},
		"by default":                 {had, "", false},
		"larger":                     {had, "10.0.0.0/19", false},
		"moved":                      {had, "10.8.0.0/20", true},
		"larger elsewhere":           {had, "10.32.0.0/19", true},
		"smaller":                    {had, "10.0.0.0/21", true},
		"grown before, by default":   {subnetwork("persia-dev", "my-project", "us-central1", "10.0.0.0/19"), "", true},
		"moved with another name":    {subnetwork("persia-old", "my-project", "us-central1", "10.0.0.0/20"), "10.8.0.0/20", false},
		"moved with another project": {subnetwork("persia-dev", "other", "us-central1", "10.0.0.0/20"), "10.8.0.0/20", false},
		"moved with another region":  {subnetwork("persia-dev", "my-project", "us-east1", "10.0.0.0/20"), "10.8.0.0/20", false},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := programtest.ReadStack(t, "Pulumi.dev.yaml")
			if c.wanted != "" {
				programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
					set(cluster.(map[string]any), "network.nodes", c.wanted)
				})
			}
			there := testkit.Cloud{}
			if c.state != nil {
				there["outputs"], there["resources"] = settings{"clusterName": "persia-dev"}, c.state
			}
			_, err := programtest.Deploy(t, configuration, there)
			if !c.refused {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "persia:cluster.network.nodes: Invalid value")
			assert.ErrorContains(t, err, "or a larger range that contains it")
		})
	}
}

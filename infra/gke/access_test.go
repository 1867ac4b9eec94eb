package gke

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"

	"persia/config"
)

// TestAccessWarning: an update says to whom it closes the control plane.
func TestAccessWarning(t *testing.T) {
	const office, vpn = "81.2.69.142/32", "10.9.0.0/16"
	block := func(cidr string) any { return map[string]any{"cidrBlock": cidr} }
	const onlyNetwork = "only machines in the network clicks can connect to it then, Pulumi included"
	for name, c := range map[string]struct {
		had  []any
		now  config.Cluster
		says []string
	}{
		"nothing before":              {nil, config.Cluster{}, nil},
		"as it was":                   {[]any{block(office)}, config.Cluster{AuthorizedNetworks: []config.AuthorizedNetwork{{CIDR: office}}}, nil},
		"a larger range":              {[]any{block(office)}, config.Cluster{AuthorizedNetworks: []config.AuthorizedNetwork{{CIDR: "81.2.0.0/16"}}}, nil},
		"none any more":               {[]any{block(office)}, config.Cluster{}, []string{"closes the control plane to " + office + ": ", onlyNetwork}},
		"one of two":                  {[]any{block(office), block(vpn)}, config.Cluster{AuthorizedNetworks: []config.AuthorizedNetwork{{CIDR: vpn}}}, []string{office + ": only machines in the network clicks and " + vpn}},
		"only private addresses":      {[]any{block(office), block(vpn)}, config.Cluster{PrivateEndpoint: true, AuthorizedNetworks: []config.AuthorizedNetwork{{CIDR: office}, {CIDR: vpn}}}, []string{"plane to " + office + ": only machines in the network clicks and " + vpn + " can"}},
		"another cluster in its room": {[]any{block(office)}, config.Cluster{Region: "us-east1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			state := map[resource.URN]map[string]any{"urn:pulumi:dev::persia::gcp:container/cluster:Cluster::clicks": {
				"name": "clicks", "project": "mine", "location": "", "privateClusterConfig": map[string]any{"enablePrivateEndpoint": false},
				"masterAuthorizedNetworksConfig": map[string]any{"cidrBlocks": c.had},
			}}
			c.now.Name = "clicks"
			text := AccessWarning("mine", c.now, state)
			for _, part := range c.says {
				assert.Contains(t, text, part)
			}
			assert.Equal(t, c.says == nil, text == "", text)
		})
	}
}

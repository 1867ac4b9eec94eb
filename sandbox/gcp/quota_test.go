package gcp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/gcp"
	"persia/sandbox/gcp/gke"
)

// vCPUs returns the regional quotas of vCPUs that the plan of a stack file asks for.
func (e *engine) vCPUs(configuration map[string]string) gke.Quotas {
	e.Helper()
	quotas := gke.Quotas{}
	for _, quota := range e.load(configuration).Plan().Quotas {
		if strings.Contains(quota.Name, "CPUS") && quota.Region != "global" {
			quotas[quota.Name] = quota.Amount
		}
	}
	return quotas
}

// TestUpgradesWithinTheQuota upgrades the 30 largest nodes of the stack prod in a project that has vCPUs
// for no more. The default of the program needs no more. Another upgrade fails and leaves the old nodes,
// and goes on with the vCPUs of its plan.
func TestUpgradesWithinTheQuota(t *testing.T) {
	const pool, nodes, quota = "embedding-ps", 30, "M2_CPUS"
	for name, c := range map[string]struct {
		upgrade values
		fits    bool
	}{
		"the program's default": {nil, true},
		"two more nodes":        {values{"maxSurge": 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e, file := newStack(t, "../.."), stackFile(t, "../../Pulumi.prod.yaml")
			require.Equal(t, pool, file["persia:nodePools"].([]any)[3].(values)["name"])
			if c.upgrade != nil {
				set("persia:nodePools", "3.upgrade", c.upgrade)(file)
			}
			planned, has := e.vCPUs(configuration(t, file)), e.vCPUs(configuration(t, file))
			has[quota] = nodes * 416
			e.api.gke.Quotas = has
			e.up(configuration(t, file))
			before := e.nodes()
			stay := func() int {
				count := 0
				for name, node := range e.nodes() {
					if _, was := before[name]; was && node.Labels[gcp.LabelNodePool] == pool {
						count++
					}
				}
				return count
			}
			set("persia:nodePools", "3.disk", values{"sizeGb": 333})(file)
			err := e.tryUp(configuration(t, file))
			if c.fits {
				require.NoError(t, err)
				assert.Equal(t, has[quota], planned[quota])
			} else {
				assert.ErrorContains(t, err, "Quota 'M2_CPUS' exceeded. Limit: 12480.0 in region us-central1")
				assert.Equal(t, nodes, stay())
				e.api.gke.Quotas = planned
				e.up(configuration(t, file))
			}
			assert.Zero(t, stay())
			assert.Equal(t, nodes, e.nodesOf(pool))
		})
	}
}

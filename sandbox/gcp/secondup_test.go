package gcp

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSecondUp: where GKE answers something else than it was asked for, a second up has
// nothing to do all the same, neither before nor after a refresh.
func TestSecondUp(t *testing.T) {
	const key = "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k"
	managed := func(machine, gpu string) values {
		return values{"machineType": machine, "gpu": values{"type": gpu, "count": 8}}
	}
	for name, c := range map[string]struct{ cluster, pool values }{
		"machines with local SSDs: A3": {nil, managed("a3-highgpu-8g", "nvidia-h100-80gb")},
		"local SSDs":                   {nil, values{"localSsdCount": 2}},
		"Spot GPUs":                    {nil, values{"spot": true, "machineType": "a2-highgpu-8g", "gpu": values{"type": "nvidia-tesla-a100", "count": 8}}},
		"encrypted Secrets":            {values{"encryption": values{"secrets": key}}, nil},
		"encrypted boot disks":         {values{"encryption": values{"bootDisks": key}}, nil},
		"metrics in another order":     {values{"monitoring": values{"components": []any{"DCGM", "POD", "SYSTEM_COMPONENTS"}}}, nil},
		"no logs":                      {values{"logging": values{"components": []any{}}}, nil},
		"no metrics":                   {values{"monitoring": values{"components": []any{}, "managedPrometheus": false}}, nil},
		"queued provisioning":          {nil, values{"nodes": nil, "autoscaling": values{"minNodes": 0, "maxNodes": 4}, "queuedProvisioning": true}},
		"a reservation":                {nil, values{"reservation": "workers"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, file := newStack(t, "../.."), poolStackOf(t, c.pool)
			maps.Copy(file["persia:cluster"].(values), c.cluster)
			e.up(configuration(t, file))
			e.cloud.Requests()
			assert.Empty(t, e.up(configuration(t, file)), "a second up")
			assert.Empty(t, e.refresh(), "drift")
			assert.Empty(t, e.up(configuration(t, file)), "an up after a refresh")
			assert.Empty(t, e.cloud.Requests(), "requests that change something")
		})
	}
}

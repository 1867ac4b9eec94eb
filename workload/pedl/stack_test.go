package pedl_test

import (
	"maps"
	"testing"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

const (
	registryPassword = "registry-" + programtest.Password
	databasePassword = "database-" + programtest.Password
	externalPassword = "external-" + programtest.Password
)

// pedlStack is dev with PEDL, its settings by path, a system pool for it, and two more pools that are free.
func pedlStack(t *testing.T, settings fields) map[string]string {
	t.Helper()
	return programtest.ReadStack(t, "Pulumi.dev.yaml", platform(settings), testkit.Edits{
		"persia:cluster.systemPool": fields{"machineType": "n2-standard-16"},
		"persia:nodePools[1]": fields{"name": "pedl", "machineType": "g2-standard-8", "nodes": 2, "gpu": fields{"type": "nvidia-l4", "count": 1},
			"taints": list{fields{"key": "team", "value": "ranking", "effect": "NoSchedule"}}},
		"persia:jobs":         list{},
		"persia:nodePools[2]": fields{"name": "spare", "machineType": "n2-standard-16", "nodes": 1},
	})
}

// platform is PEDL with settings by their paths.
func platform(settings fields) testkit.Edits {
	pedl := testkit.Edits{"persia:pedl.registry.password": registryPassword}
	if _, external := settings["postgresql.external"]; !external {
		pedl["persia:pedl.postgresql.postgresqlPassword"] = databasePassword
	}
	for path, value := range settings {
		pedl["persia:pedl."+path] = value
	}
	return pedl
}

func deployPEDL(t *testing.T, settings fields) *testkit.Recorder {
	t.Helper()
	return programtest.MustDeploy(t, pedlStack(t, settings))
}

// deployOnExisting is [deployPEDL] on a cluster that the stack does not create, with a storage class of that cluster.
func deployOnExisting(t *testing.T, settings fields) *testkit.Recorder {
	t.Helper()
	small := fields{"limits": fields{"cpu": "500m", "memory": "1Gi"}}
	all := fields{"resources": small, "postgresql.resources": small, "postgresql.persistence.storageClass": "standard"}
	maps.Copy(all, settings)
	return programtest.MustDeploy(t, programtest.ReadStack(t, "examples/Pulumi.existing.yaml", platform(all)))
}

package pedl_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

const (
	registryPassword = "registry-" + programtest.Password
	databasePassword = "database-" + programtest.Password
	externalPassword = "external-" + programtest.Password
)

// pedlStack is dev, with a system pool for PEDL, two more pools that nothing else
// uses, and PEDL with settings by their paths.
func pedlStack(t *testing.T, settings map[string]any) map[string]string {
	t.Helper()
	configuration := programtest.ReadStack(t, "Pulumi.dev.yaml")
	programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
		cluster.(map[string]any)["systemPool"] = map[string]any{"machineType": "n2-standard-16"}
	})
	pools := []any{}
	require.NoError(t, json.Unmarshal([]byte(configuration["persia:nodePools"]), &pools))
	text, err := json.Marshal(append(pools,
		map[string]any{"name": "pedl", "machineType": "g2-standard-8", "nodes": 2, "gpu": map[string]any{"type": "nvidia-l4", "count": 1},
			"taints": []any{map[string]any{"key": "team", "value": "ranking", "effect": "NoSchedule"}}},
		map[string]any{"name": "spare", "machineType": "n2-standard-16", "nodes": 1}))
	require.NoError(t, err)
	configuration["persia:nodePools"] = string(text)
	configuration["persia:pedl"] = platform(t, settings)
	return configuration
}

// platform is PEDL with settings by their paths.
func platform(t *testing.T, settings map[string]any) string {
	t.Helper()
	pedl := map[string]any{}
	write(pedl, "registry.password", registryPassword)
	if _, external := settings["postgresql.external"]; !external {
		write(pedl, "postgresql.postgresqlPassword", databasePassword)
	}
	for path, value := range settings {
		write(pedl, path, value)
	}
	text, err := json.Marshal(pedl)
	require.NoError(t, err)
	return string(text)
}

// write puts a value at a path of names.
func write(object map[string]any, path string, value any) {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		object[name] = value
		return
	}
	if _, ok := object[name].(map[string]any); !ok {
		object[name] = map[string]any{}
	}
	write(object[name].(map[string]any), rest, value)
}

func deployPEDL(t *testing.T, settings map[string]any) *testkit.Recorder {
	t.Helper()
	recorder, err := programtest.Deploy(t, pedlStack(t, settings))
	require.NoError(t, err)
	return recorder
}

// deployOnExisting is [deployPEDL] on a cluster that the stack does not create, with a storage class of that cluster.
func deployOnExisting(t *testing.T, settings map[string]any) *testkit.Recorder {
	t.Helper()
	small := map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "1Gi"}}
	all := map[string]any{"resources": small, "postgresql.resources": small, "postgresql.persistence.storageClass": "standard"}
	maps.Copy(all, settings)
	configuration := programtest.ReadStack(t, "examples/Pulumi.existing.yaml")
	configuration["persia:pedl"] = platform(t, all)
	recorder, err := programtest.Deploy(t, configuration)
	require.NoError(t, err)
	return recorder
}

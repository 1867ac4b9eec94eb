package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
)

var at = field.NewPath("persia:pedl")

// ofOneZone is a stack whose node pools have one zone.
var ofOneZone = &Stack{Cluster: Cluster{Name: "persia", Zones: []string{"us-central1-a"},
	SystemPool: SystemPool{MachineType: "e2-standard-4", Nodes: 1}}}

// pedlLoad decodes, resolves and checks a platform.
func pedlLoad(text string, stack *Stack) (*PEDL, error) {
	f, p := &PEDL{}, &input.Problems{}
	input.Decode(p, at, input.ParseJSON(text), f)
	f.Resolve(stack)
	f.Check(p, at, stack)
	return f, p.Err()
}

func TestPedlDefaults(t *testing.T) {
	f, err := pedlLoad(`{"registry": {"password": "r"}, "postgresql": {"postgresqlPassword": "p"}}`, ofOneZone)
	require.NoError(t, err)
	assert.Equal(t, "determinedai/pedl-master", f.MasterImage)
	assert.Equal(t, "system", f.NodePool)
	assert.Equal(t, corev1.ServiceTypeClusterIP, f.Service.Type)
	assert.Equal(t, 8080, f.Service.Port)
	assert.True(t, f.Postgres.Persistence.Enabled)
	assert.Equal(t, map[string]SettingValue{"maxConnections": "2000", "sharedBuffers": "512MB"}, f.Postgres.ExtendedConfig)
	disk, ok := f.Postgres.Volume()
	require.True(t, ok)
	assert.Equal(t, "persia-pedl-postgresql", disk.PersistentDisk.Disk)
	assert.Equal(t, []string{"us-central1-a"}, disk.PersistentDisk.Zones, "a pod is where its disk is")
}

func TestExternalDatabaseHasNoVolume(t *testing.T) {
	f, err := pedlLoad(`{"registry": {"password": "r"}, "postgresql": {"external": {"host": "10.0.0.9", "password": "p"}}}`, ofOneZone)
	require.NoError(t, err)
	assert.Equal(t, ExternalDatabase{Host: "10.0.0.9", Port: 5432, User: "postgres", Database: "pedl", Password: "p"}, *f.Postgres.External)
	_, ok := f.Postgres.Volume()
	assert.False(t, ok)
}

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

// context is a cluster whose node pools have one zone.
var context = pedlContext{
	Cluster:    "persia",
	SystemPool: "system",
	Pool: func(name string) (volumePool, bool) {
		return volumePool{Name: name, Nodes: 1, Zones: []string{"us-central1-a"}}, name == "system"
	},
	VolumesPath: field.NewPath("persia:storage"),
}

// pedlLoad decodes, resolves and checks a platform.
func pedlLoad(text string, context pedlContext) (*PEDL, error) {
	f, p := &PEDL{}, &input.Problems{}
	input.Decode(p, at, input.ParseJSON(text), f)
	f.Resolve(context)
	f.Check(p, at, context)
	return f, p.Err()
}

func TestPedlDefaults(t *testing.T) {
	f, err := pedlLoad(`{"registry": {"password": "r"}, "postgresql": {"postgresqlPassword": "p"}}`, context)
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
	f, err := pedlLoad(`{"registry": {"password": "r"}, "postgresql": {"external": {"host": "10.0.0.9", "password": "p"}}}`, context)
	require.NoError(t, err)
	assert.Equal(t, ExternalDatabase{Host: "10.0.0.9", Port: 5432, User: "postgres", Database: "pedl", Password: "p"}, *f.Postgres.External)
	_, ok := f.Postgres.Volume()
	assert.False(t, ok)
}

func TestEnumerations(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"imagePullPolicy": "other"}`, `persia:pedl.imagePullPolicy: Invalid value: "other": must be Always, IfNotPresent or Never`},
		{`{"service": {"type": "other"}}`, `persia:pedl.service.type: Invalid value: "other": must be ClusterIP, NodePort or LoadBalancer`},
		{`{"postgresql": {"image": {"pullPolicy": "other"}}}`, `persia:pedl.postgresql.image.pullPolicy: Invalid value: "other": must be Always, IfNotPresent or Never`},
		{`{"postgresql": {"persistence": {"accessMode": "other"}}}`, `persia:pedl.postgresql.persistence.accessMode: Invalid value: "other": must be ReadWriteOnce or ReadWriteMany`},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, err := pedlLoad(c.text, context)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
)

var natsPath = field.NewPath("persia:nats")

// natsRead decodes settings and resolves them.
func natsRead(t *testing.T, text string) NATS {
	t.Helper()
	var s NATS
	p := &input.Problems{}
	input.Decode(p, natsPath, input.ParseJSON(text), &s)
	require.NoError(t, p.Err())
	s.Resolve("system")
	return s
}

// job returns a job with overrides.
func job(name string, overrides NATSOverrides) Job {
	j := Job{Name: name, NATS: overrides, at: field.NewPath("persia:jobs").Key(name)}
	for _, role := range j.Roles() {
		role.Replicas = 1
	}
	j.NNWorker.NprocPerNode = 1
	return j
}

func TestNatsDefaults(t *testing.T) {
	for _, text := range []string{"null", "{}"} {
		s := natsRead(t, text)
		assert.Equal(t, "persia-nats-service", s.Name)
		assert.Equal(t, 1, s.Size)
		assert.Equal(t, "system", s.NodePool)
		assert.Equal(t, 4*52428800, s.MaxPending)
		assert.True(t, s.Spread)
		assert.True(t, s.ConfigReload)
		assert.Equal(t, ScopeNamespace, s.OperatorScope)
		p := &input.Problems{}
		checkNATSClusters(p, natsPath, s, s.Clusters(nil))
		assert.NoError(t, p.Err(), "the defaults hold a slow client")
	}
	assert.False(t, natsRead(t, `{"spread": false}`).Spread)
}

// TestClusters checks that each job has its own NATS, and that the first has the published name.
func TestClusters(t *testing.T) {
	s := natsRead(t, `{"maxConnections": 1000}`)
	clusters := s.Clusters([]Job{job("a", NATSOverrides{}), job("b", NATSOverrides{Size: 3, MaxPayload: 1 << 20}), job("c", NATSOverrides{Name: "mine", Credentials: true})})
	require.Len(t, clusters, 3)
	assert.Equal(t, s, clusters[0].NATS)
	assert.False(t, clusters[0].IsOwn())
	assert.Equal(t, "b-nats.nats-io.svc", clusters[1].Host())
	assert.Equal(t, 3, clusters[1].Size)
	assert.Equal(t, 1<<20, clusters[1].MaxPayload)
	assert.Equal(t, 4<<20, clusters[1].MaxPending)
	assert.Equal(t, 1000, clusters[1].MaxConnections)
	assert.Equal(t, "mine", clusters[2].Name)
	assert.Equal(t, []string{"a", "b", "c"}, []string{clusters[0].Job, clusters[1].Job, clusters[2].Job})
}

func TestRefusesClusters(t *testing.T) {
	for name, test := range map[string]struct {
		settings string
		jobs     []Job
		says     string
	}{
		"one name twice":        {"{}", []Job{job("a", NATSOverrides{}), job("b", NATSOverrides{Name: "persia-nats-service"})}, `persia:jobs[b].nats.name: Duplicate value: "persia-nats-service": is already used by the NATS of a`},
		"the operator's name":   {"{}", []Job{job("a", NATSOverrides{Name: "nats-operator"})}, "the name of the NATS operator"},
		"too few connections":   {`{"maxConnections": 3}`, []Job{job("a", NATSOverrides{})}, "persia:nats.maxConnections: Invalid value: 3: the job a has 4 processes"},
		"its own, too":          {"{}", []Job{job("a", NATSOverrides{MaxConnections: 3})}, "persia:jobs[a].nats.maxConnections: Invalid value: 3"},
		"users without a login": {`{"users": [{"name": "u", "password": "p"}]}`, []Job{job("a", NATSOverrides{Credentials: true}), job("b", NATSOverrides{})}, "persia:nats.users: would lock out the job b"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := natsRead(t, test.settings), &input.Problems{}
			checkNATSClusters(p, natsPath, s, s.Clusters(test.jobs))
			assert.ErrorContains(t, p.Err(), test.says)
		})
	}
}

func TestAnswers(t *testing.T) {
	for url, answers := range map[string]bool{
		"nats://broker:4222": true, "nats://broker.nats-io": true, "nats://broker.nats-io.svc.cluster.local:4222": true,
		"nats://other:4222": false, "nats://broker:4223": false, "tls://broker:4222": false, "nats://u:p@broker:4222": false, "broker": false,
	} {
		assert.Equal(t, answers, natsAnswers("broker", url), url)
	}
}

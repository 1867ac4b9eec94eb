package natsspec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/decode"
)

var path = field.NewPath("persia:nats")

// read decodes settings and resolves them.
func read(t *testing.T, text string) Settings {
	t.Helper()
	var s Settings
	p := &check.Problems{}
	decode.Into(p, path, decode.JSON(text), &s)
	require.NoError(t, p.Err())
	s.Resolve("system")
	return s
}

// job returns a job with overrides.
func job(name string, overrides Overrides) Job {
	return Job{Name: name, Overrides: overrides, At: field.NewPath("persia:jobs").Key(name).Child("nats"), Processes: 4}
}

func TestDefaults(t *testing.T) {
	for _, text := range []string{"null", "{}"} {
		s := read(t, text)
		assert.Equal(t, "persia-nats-service", s.Name)
		assert.Equal(t, 1, s.Size)
		assert.Equal(t, "system", s.NodePool)
		assert.Equal(t, 4*52428800, s.MaxPending)
		assert.True(t, s.Spread)
		assert.True(t, s.ConfigReload)
		assert.Equal(t, ScopeNamespace, s.OperatorScope)
		p := &check.Problems{}
		Check(p, path, s, s.Clusters(nil))
		assert.NoError(t, p.Err(), "the defaults hold a slow client")
	}
	assert.False(t, read(t, `{"spread": false}`).Spread)
}

// TestClusters checks that each job has its own NATS, and that the first has the published name.
func TestClusters(t *testing.T) {
	s := read(t, `{"maxConnections": 1000}`)
	clusters := s.Clusters([]Job{job("a", Overrides{}), job("b", Overrides{Size: 3, MaxPayload: 1 << 20}), job("c", Overrides{Name: "mine", Credentials: true})})
	require.Len(t, clusters, 3)
	assert.Equal(t, s, clusters[0].Settings)
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
		"one name twice":        {"{}", []Job{job("a", Overrides{}), job("b", Overrides{Name: "persia-nats-service"})}, `persia:jobs[b].nats.name: Duplicate value: "persia-nats-service": is already used by the NATS of a`},
		"the operator's name":   {"{}", []Job{job("a", Overrides{Name: "nats-operator"})}, "the name of the NATS operator"},
		"too few connections":   {`{"maxConnections": 3}`, []Job{job("a", Overrides{})}, "persia:nats.maxConnections: Invalid value: 3: the job a has 4 processes"},
		"its own, too":          {"{}", []Job{job("a", Overrides{MaxConnections: 3})}, "persia:jobs[a].nats.maxConnections: Invalid value: 3"},
		"users without a login": {`{"users": [{"name": "u", "password": "p"}]}`, []Job{job("a", Overrides{Credentials: true}), job("b", Overrides{})}, "persia:nats.users: would lock out the job b"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := read(t, test.settings), &check.Problems{}
			Check(p, path, s, s.Clusters(test.jobs))
			assert.ErrorContains(t, p.Err(), test.says)
		})
	}
}

func TestAnswers(t *testing.T) {
	for url, answers := range map[string]bool{
		"nats://broker:4222": true, "nats://broker.nats-io": true, "nats://broker.nats-io.svc.cluster.local:4222": true,
		"nats://other:4222": false, "nats://broker:4223": false, "tls://broker:4222": false, "nats://u:p@broker:4222": false, "broker": false,
	} {
		assert.Equal(t, answers, Answers("broker", url), url)
	}
}

package natsspec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/config/jobspec"
	"persia/internal/certtest"
	"persia/internal/stacktest"
)

// twoJobs returns the base stack with edits and a second job.
func twoJobs(t *testing.T, changes edits) func(string) (string, bool) {
	t.Helper()
	second := stacktest.Edit(t, stacktest.Parse(t, stacktest.Base)["persia:jobs"], []string{"0", "name"}, "second").([]any)[0]
	all := edits{"persia:jobs[1]": second, "persia:nodePools[0].nodes": 8, "persia:nodePools[1].autoscaling.maxNodes": 20,
		"persia:nodePools[2].nodes": 8, "persia:cluster.systemPool.nodes": 6}
	for path, value := range changes {
		all[path] = value
	}
	return stacktest.File(t, all)
}

// TestNATSOfJobs checks that each job has its own NATS, with the settings of the stack unless
// the job overrides them.
func TestNATSOfJobs(t *testing.T) {
	s, err := config.Load(twoJobs(t, edits{
		"persia:nats.maxConnections":     1000,
		"persia:jobs[1].nats.size":       5,
		"persia:jobs[1].nats.maxPayload": 1 << 20,
		"persia:jobs[1].nats.resources":  edits{"limits": edits{"cpu": "500m", "memory": "2Gi"}},
		"persia:jobs[1].nats.nodePool":   "loaders",
	}), nil)
	require.NoError(t, err)
	clusters := s.NATSClusters()
	require.Len(t, clusters, 2)
	first, second := clusters[0], clusters[1]
	assert.Equal(t, "train", first.Job)
	assert.Equal(t, s.NATS, first.Settings, "the first job has the stack's own")
	assert.Equal(t, "second", second.Job)
	assert.Equal(t, "second-nats", second.Name)
	assert.Equal(t, "second-nats.nats-io.svc", second.Host())
	assert.Equal(t, 5, second.Size)
	assert.Equal(t, 4<<20, second.MaxPending, "four messages of its own size")
	assert.Equal(t, 1000, second.MaxConnections, "the stack's")
	assert.Equal(t, "2Gi", second.Resources.Limits.Memory().String())

	pods := map[string]int{}
	for _, pool := range s.Plan().Pools {
		for _, kind := range pool.Pods {
			if kind.Priority == jobspec.PriorityNATS.Value {
				pods[pool.Name+": "+kind.Name] += kind.Count
			}
		}
	}
	assert.Equal(t, map[string]int{"system: NATS server of train": 3, "loaders: NATS server of second": 5}, pods)
}

func TestNATSWithoutJobs(t *testing.T) {
	s, err := stacktest.Load(t, edits{"persia:jobs": []any{}})
	require.NoError(t, err)
	clusters := s.NATSClusters()
	require.Len(t, clusters, 1)
	assert.Equal(t, "persia-nats-service", clusters[0].Name)
	assert.Empty(t, clusters[0].Job, "for other clients")
}

// TestNATSServersOfOneSize checks that the plan groups servers of one size, unless they have
// anti-affinity.
func TestNATSServersOfOneSize(t *testing.T) {
	for apart, want := range map[bool][]string{
		false: {"NATS server of train and 1 more"},
		true:  {"NATS server of train", "NATS server of second"},
	} {
		s, err := config.Load(twoJobs(t, edits{"persia:nats.antiAffinity": apart}), nil)
		require.NoError(t, err)
		var names []string
		for _, kind := range s.Plan().Pools[0].Pods {
			if kind.Priority == jobspec.PriorityNATS.Value {
				names = append(names, kind.Name)
			}
		}
		assert.Equal(t, want, names)
	}
}

// TestLimitsOfNATS checks that Warnings reports a limit that no node reaches once, at its path.
func TestLimitsOfNATS(t *testing.T) {
	resources := func(memory string) edits {
		return edits{"limits": edits{"cpu": "500m", "memory": memory}, "requests": edits{"cpu": "500m", "memory": "2Gi"}}
	}
	const says = ".resources.limits[memory]: "
	for name, c := range map[string]struct {
		edits edits
		want  []string
	}{
		"of both jobs":     {edits{"persia:nats.resources": resources("10Ti")}, []string{"persia:nats" + says + "10Ti is more than the 16Gi of a e2-standard-4"}},
		"of one job":       {edits{"persia:jobs[1].nats.resources": resources("10Ti")}, []string{"persia:jobs[1].nats" + says + "10Ti is more than the 16Gi of a e2-standard-4"}},
		"on a job's pool":  {edits{"persia:nats.resources": resources("40Gi"), "persia:jobs[1].nats.nodePool": "loaders", "persia:nats.nodePool": "loaders"}, nil},
		"off a job's pool": {edits{"persia:nats.resources": resources("40Gi"), "persia:jobs[1].nats.nodePool": "loaders"}, []string{"persia:nats" + says + "40Gi is more than the 16Gi of a e2-standard-4"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := config.Load(twoJobs(t, c.edits), nil)
			require.NoError(t, err)
			var found []string
			for _, warning := range s.Warnings() {
				if said, _, ok := strings.Cut(warning, ", the machine type of pool "); ok {
					found = append(found, said)
				}
			}
			assert.Equal(t, c.want, found)
		})
	}
}

func TestLoadRefusesNATSOfJobs(t *testing.T) {
	good := certtest.New(t, "persia-nats-service.nats-io.svc")
	for _, c := range []stacktest.Refusal{
		{"name of the other's", edits{"persia:jobs[1].nats.name": "persia-nats-service"},
			"persia:jobs[1].nats.name", []string{"persia-nats-service", "the NATS of train"}},
		{"name of the operator", edits{"persia:jobs[1].nats.name": "nats-operator"},
			"persia:jobs[1].nats.name", []string{"the name of the NATS operator"}},
		{"name of a service of a job", edits{"persia:jobs[1].nats.name": "train-nn-worker"},
			"persia:jobs[0].name", []string{"train-nn-worker", "persia:jobs[1].nats.name"}},
		{"no such pool", edits{"persia:jobs[1].nats.nodePool": "nats"},
			"persia:jobs[1].nats.nodePool", []string{`"nats"`, "one of the stack's node pools"}},
		{"memory for no message", edits{"persia:jobs[1].nats.resources": edits{"limits": edits{"cpu": 1, "memory": "300Mi"}}},
			"persia:jobs[1].nats.resources.limits[memory]", []string{"300Mi", "less than 364Mi"}},
		{"fewer connections than processes", edits{"persia:jobs[1].nats.maxConnections": 26},
			"persia:jobs[1].nats.maxConnections", []string{"the job second has 27 processes"}},
		{"users of the second job", edits{"persia:nats.users": []any{edits{"name": "a", "password": hidden}}, "persia:jobs[0].nats.credentials": true},
			"persia:nats.users", []string{"the job second"}},
		{"certificate for one of them", edits{"persia:nats.tls": edits{"clients": written(good, "", "")}},
			"persia:nats.tls.clients.certificate", []string{"second-nats.nats-io.svc"}},
	} {
		t.Run(c.Name, func(t *testing.T) {
			_, err := config.Load(twoJobs(t, c.Edits), nil)
			require.Error(t, err)
			found := stacktest.LineOf(t, err, c.Path)
			for _, part := range c.Says {
				assert.Contains(t, found, part)
			}
		})
	}
	wildcard := certtest.New(t, "*.nats-io.svc")
	_, err := config.Load(twoJobs(t, edits{"persia:nats.tls": edits{"clients": written(wildcard, "", "")}}), nil)
	assert.NoError(t, err)
}

// TestOwnNATSInManifests checks that Load removes the address of the job's NATS in a manifest,
// by the published name and by its own.
func TestOwnNATSInManifests(t *testing.T) {
	variable := func(url string) []any { return []any{edits{"name": "PERSIA_NATS_URL", "value": url}} }
	for url, kept := range map[string]bool{
		"nats://persia-nats-service.nats-io:4222": false,
		"nats://second-nats.nats-io.svc:4222":     false,
		"nats://elsewhere.example:4222":           true,
	} {
		s, err := config.Load(twoJobs(t, edits{"persia:jobs[1].env": variable(url)}), nil)
		require.NoError(t, err)
		names := []string{}
		for _, e := range s.Jobs[1].Env {
			names = append(names, e.Name)
		}
		assert.Equal(t, kept, slices.Contains(names, "PERSIA_NATS_URL"), url)
	}
}

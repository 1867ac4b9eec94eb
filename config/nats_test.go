package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/testkit"
)

func TestNATSRefused(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		{"name too long", edits{"persia:nats.name": strings.Repeat("n", 51)}, "persia:nats.name", []string{"51 characters", "at most 50"}},
		{"name starting with a digit", edits{"persia:nats.name": "1nats"}, "persia:nats.name", []string{"1nats", "start with an alphabetic"}},
		{"name of the operator", edits{"persia:nats.name": "nats-operator"}, "persia:nats.name", []string{"nats-operator", "the name of the NATS operator", "choose another name"}},
		{"version with a v", edits{"persia:nats.version": "v2.12.12"}, "persia:nats.version", []string{"v2.12.12", "as MAJOR.MINOR.PATCH in quotes"}},
		{"version too old", edits{"persia:nats.version": "2.1.9"}, "persia:nats.version", []string{"2.1.9", "2.2.0 or later"}},
		{"image with a tag", edits{"persia:nats.image": "nats:2.12.12"}, "persia:nats.image", []string{"nats:2.12.12", "without a tag", "version"}},
		{"a pool that is not there", edits{"persia:nats.nodePool": "nats"}, "persia:nats.nodePool", []string{`"nats"`, `write "training", or write "loaders", or write "ps", or write "system"`}},
		{"no memory", edits{"persia:nats.resources.limits.memory": nil}, "persia:nats.resources.limits[memory]", []string{"Required", "a NATS server"}},
		{"memory for no message", edits{"persia:nats.resources.limits.memory": "363Mi"}, "persia:nats.resources.limits[memory]", []string{"363Mi", "less than 364Mi"}},
		{"memory that is only requested", edits{"persia:nats.resources": edits{"requests": edits{"cpu": 1, "memory": "300Mi"}}},
			"persia:nats.resources.requests[memory]", []string{"300Mi", "less than 364Mi"}},
		{"too large for the system pool", edits{"persia:nats.resources.limits.memory": "14Gi"},
			"persia:cluster.systemPool.machineType", []string{`"e2-standard-4"`, "memory for a pod of NATS server", "11.9Gi", "write machineType: n2-highmem-8"}},
	})
	testkit.Accepted(t, map[string]edits{
		"just enough memory":    {"persia:nats.resources.limits.memory": "364Mi"},
		"an image of one's own": {"persia:nats.image": "registry.example.com:5000/team/nats"},
	})
}

// hidden is a password that no message may contain.
const hidden = "hunter2-is-hidden"

// TestSecretsAreNotPrinted checks that no message contains a password, right or misplaced.
func TestSecretsAreNotPrinted(t *testing.T) {
	for name, changes := range map[string]edits{
		"a number":              {"persia:pedl.registry.password": 24681012},
		"in place of an object": {"persia:pedl.registry": hidden},
		"in a list":             {"persia:pedl.registry.password": []any{hidden}},
		"in an object":          {"persia:pedl.registry.password": edits{"is": hidden}},
		"in a misspelt field":   {"persia:pedl.registry": edits{"pasword": hidden}},
		"in place of the key":   {"persia:pedl": hidden},
		"with a line break":     {"persia:pedl.registry.password": hidden + "\n"},
		"beside other mistakes": {"persia:pedl.registry.password": hidden, "persia:pedl.service.port": -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testkit.Load(t, changes)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "persia:pedl")
			assert.NotContains(t, err.Error(), hidden)
			assert.NotContains(t, err.Error(), "24681012")
		})
	}
	s := testkit.Must(testkit.Load(t, edits{"persia:pedl": edits{"resources": edits{"limits": edits{"cpu": 1, "memory": "1Gi"}}, "registry": edits{"password": hidden}, "postgresql": edits{"external": edits{"host": "10.0.0.2", "password": hidden}}}}))(t)
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v %s", s.PEDL, s.PEDL.Registry, s.PEDL.Registry, s.PEDL.Registry.Password), hidden)
	assert.Equal(t, hidden, string(s.PEDL.Registry.Password))
}

func TestNATSWarned(t *testing.T) {
	testkit.Warned(t, []testkit.Refusal{
		{"messages smaller than PERSIA's", edits{"persia:nats.maxPayload": 1048576}, "persia:nats.maxPayload", []string{"1048576 bytes are less than the 52428800", "omit it"}},
		{"messages of a job", edits{"persia:jobs[0].nats": edits{"maxPayload": 50}}, "persia:jobs[0].nats.maxPayload", []string{"50 bytes"}},
		{"messages as large as PERSIA's", edits{"persia:nats.maxPayload": 52428800}, "persia:nats.maxPayload", nil},
	})
}

// twoJobs returns the base stack with edits and a second job.
func twoJobs(t *testing.T, changes edits) func(string) (string, bool) {
	t.Helper()
	keys := testkit.Parse(t, testkit.Base)
	keys.Set("persia:jobs[0].name", "second")
	second := keys["persia:jobs"].([]any)[0]
	all := edits{"persia:jobs[1]": second, "persia:nodePools[0].nodes": 8, "persia:nodePools[1].autoscaling.maxNodes": 20,
		"persia:nodePools[2].nodes": 8, "persia:cluster.systemPool.nodes": 6}
	return testkit.File(t, all.And(changes))
}

// TestNATSOfJobs checks that each job has its own NATS, with the settings of the stack unless
// the job overrides them, and that the plan groups servers of one size.
func TestNATSOfJobs(t *testing.T) {
	for name, test := range map[string]struct {
		edits         edits
		first, second string
		pods          map[string]int
	}{
		"defaults": {edits{"persia:nats": nil},
			"persia-nats-service 1 system 52428800 1Gi", "second-nats 1 system 52428800 1Gi", map[string]int{"system: NATS server of train and 1 more": 2}},
		"overrides": {edits{"persia:jobs[1].nats": edits{"name": "mine", "size": 5, "maxPayload": 1 << 20, "nodePool": "loaders",
			"resources": edits{"limits": edits{"cpu": "500m", "memory": "2Gi"}}}},
			"persia-nats-service 3 system 52428800 2Gi", "mine 5 loaders 1048576 2Gi",
			map[string]int{"system: NATS server of train": 3, "loaders: NATS server of second": 5}},
		"apart": {edits{"persia:nats.antiAffinity": true},
			"persia-nats-service 3 system 52428800 2Gi", "second-nats 3 system 52428800 2Gi",
			map[string]int{"system: NATS server of train": 3, "system: NATS server of second": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			s := testkit.Must(config.Load(twoJobs(t, test.edits), nil))(t)
			var got []string
			for _, c := range s.NATSClusters() {
				got = append(got, fmt.Sprint(c.Name, " ", c.Size, " ", c.NodePool, " ", c.MaxPayload, " ", c.Resources.Limits.Memory()))
			}
			assert.Equal(t, []string{test.first, test.second}, got)
			pods := map[string]int{}
			for _, pool := range s.Plan().Pools {
				for _, kind := range pool.Pods {
					if kind.Priority == config.PriorityNATS.Value {
						pods[pool.Name+": "+kind.Name] += kind.Count
					}
				}
			}
			assert.Equal(t, test.pods, pods)
		})
	}
}

func TestNATSWithoutJobs(t *testing.T) {
	s := testkit.Must(testkit.Load(t, edits{"persia:jobs": []any{}}))(t)
	clusters := s.NATSClusters()
	require.Len(t, clusters, 1)
	assert.Equal(t, "persia-nats-service", clusters[0].Name)
	assert.Empty(t, clusters[0].Job, "for other clients")
}

func TestNATSOfJobsRefused(t *testing.T) {
	for _, c := range []testkit.Refusal{
		{"name of the other's", edits{"persia:jobs[1].nats.name": "persia-nats-service"}, "persia:jobs[1].nats.name", []string{"persia-nats-service", "is already used by persia:jobs[0]"}},
		{"no such pool", edits{"persia:jobs[1].nats.nodePool": "nats"}, "persia:jobs[1].nats.nodePool", []string{`"nats"`, "one of the stack's node pools"}},
		{"memory for no message", edits{"persia:jobs[1].nats.resources": edits{"limits": edits{"cpu": 1, "memory": "300Mi"}}},
			"persia:jobs[1].nats.resources.limits[memory]", []string{"300Mi", "less than 364Mi"}},
	} {
		t.Run(c.Name, func(t *testing.T) {
			_, err := config.Load(twoJobs(t, c.Edits), nil)
			testkit.Says(t, err, c.Path, c.Says...)
		})
	}
}

// TestOwnNATSInManifests checks that Load removes the address of the job's NATS in a manifest,
// by the published name and by its own.
func TestOwnNATSInManifests(t *testing.T) {
	for url, removed := range map[string]bool{
		"nats://persia-nats-service.nats-io:4222": true, "nats://second-nats:4222": true, "nats://second-nats.nats-io": true,
		"nats://second-nats.nats-io.svc.cluster.local:4222": true,
		"nats://persia-nats-service":                        true, "nats://persia-nats-service.default:4222": false,
		"nats://elsewhere.example:4222": false, "nats://second-nats:4223": false, "tls://second-nats:4222": false, "nats://u:p@second-nats:4222": false, "second-nats": false,
	} {
		s, err := config.Load(twoJobs(t, edits{"persia:jobs[1].nnWorker.env": []any{edits{"name": "PERSIA_NATS_URL", "value": url}}}), nil)
		require.NoError(t, err)
		assert.Equal(t, removed, len(s.Jobs[1].NNWorker.Env) == 0, url)
	}
}

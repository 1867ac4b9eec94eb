package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/testkit"
)

// TestNatsRefused checks the message for each mistake.
func TestNatsRefused(t *testing.T) {
	testkit.Refused(t, []testkit.Refusal{
		// NATS.
		{"NATS name too long", edits{"persia:nats.name": strings.Repeat("n", 51)},
			"persia:nats.name", []string{"51 characters", "at most 50"}},
		{"NATS name starting with a digit", edits{"persia:nats.name": "1nats"},
			"persia:nats.name", []string{"1nats", "start with an alphabetic"}},
		{"NATS of more servers than any", edits{"persia:nats.size": 4294967296},
			"persia:nats.size", []string{"4294967296", "at most 1000"}},
		{"NATS of fewer servers than one", edits{"persia:nats.size": -1},
			"persia:nats.size", []string{"-1", "at least 1"}},
		{"NATS version with a v", edits{"persia:nats.version": "v2.10.22"},
			"persia:nats.version", []string{"v2.10.22", "MAJOR.MINOR.PATCH"}},
		{"NATS version too old", edits{"persia:nats.version": "2.1.9"},
			"persia:nats.version", []string{"2.1.9", "2.2.0 or later"}},
		{"NATS payload too large", edits{"persia:nats.maxPayload": 67108865},
			"persia:nats.maxPayload", []string{"67108865", "1 to 67108864", "52428800"}},
		{"NATS on a pool that is not there", edits{"persia:nats.nodePool": "nats"},
			"persia:nats.nodePool", []string{`"nats"`, "training, loaders, ps or system"}},
		{"NATS without memory", edits{"persia:nats.resources.limits.memory": nil},
			"persia:nats.resources.limits[memory]", []string{"Required", "a NATS server"}},
		{"NATS too large for the system pool", edits{"persia:nats.resources.limits.memory": "14Gi"},
			"persia:nats.resources.limits[memory]", []string{"14Gi", `pool "system"`, "of e2-standard-4", "leave 11.9Gi", "n1-highmem-4"}},
		{"NATS with GPUs", edits{"persia:nats.nodePool": "training", "persia:nats.resources.limits": edits{"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}},
			"persia:nats.resources.limits[nvidia.com/gpu]", []string{`"1"`, "remove them"}},
	})
}

// hidden is a password that no message may contain.
const hidden = "hunter2-is-hidden"

// usersOf returns edits for users of NATS and a job whose image supports them.
func usersOf(users []any) edits {
	return edits{"persia:nats.users": users, "persia:jobs[0].nats.credentials": true}
}

func TestLoadRefusesNATS(t *testing.T) {
	good := testkit.NewCertificate(t, "persia-nats-service.nats-io.svc")
	other := testkit.NewCertificate(t, "persia-nats-service.nats-io.svc")
	routes := testkit.NewCertificate(t, "*.persia-nats-service-mgmt.nats-io.svc")
	testkit.Refused(t, []testkit.Refusal{
		{"image with a tag", edits{"persia:nats.image": "nats:2.10.22"},
			"persia:nats.image", []string{"nats:2.10.22", "without a tag", "version"}},
		{"another scope", edits{"persia:nats.operatorScope": "world"},
			"persia:nats.operatorScope", []string{"world", "namespace or cluster"}},
		{"pending below the payload", edits{"persia:nats.maxPending": 52428799},
			"persia:nats.maxPending", []string{"52428799", "at least maxPayload, 52428800"}},
		{"no connections", edits{"persia:nats.maxConnections": -1},
			"persia:nats.maxConnections", []string{"-1", "at least 1"}},
		{"fewer connections than processes", edits{"persia:nats.maxConnections": 26},
			"persia:nats.maxConnections", []string{"26", "the job train has 27 processes"}},
		{"users that PERSIA cannot be", edits{"persia:nats.users": []any{edits{"name": "persia", "password": hidden}}},
			"persia:nats.users", []string{"the job train", "cannot use credentials", "remove users", "persia:jobs[0].nats.credentials: true"}},
		{"name of the operator", edits{"persia:nats.name": "nats-operator"},
			"persia:nats.name", []string{"nats-operator", "the name of the NATS operator", "choose another name"}},
		{"deadline of no unit", edits{"persia:nats.writeDeadline": "10"},
			"persia:nats.writeDeadline", []string{`"10"`, "from 1s to 5m"}},
		{"deadline too short", edits{"persia:nats.writeDeadline": "500ms"},
			"persia:nats.writeDeadline", []string{"500ms", "from 1s to 5m"}},
		{"deadline too long", edits{"persia:nats.writeDeadline": "1h"},
			"persia:nats.writeDeadline", []string{"1h", "from 1s to 5m"}},
		{"memory for no message", edits{"persia:nats.resources.limits.memory": "363Mi"},
			"persia:nats.resources.limits[memory]", []string{"363Mi", "less than 364Mi", "lower those limits"}},
		{"memory for less than is pending", edits{"persia:nats.maxPending": 2 << 30},
			"persia:nats.resources.limits[memory]", []string{"2Gi", "less than 2212Mi"}},
		{"memory that is only requested", edits{"persia:nats.resources": edits{"requests": edits{"cpu": 1, "memory": "300Mi"}}},
			"persia:nats.resources.requests[memory]", []string{"300Mi", "less than 364Mi"}},

		{"user without a name", usersOf([]any{edits{"password": hidden}}),
			"persia:nats.users[0].name", []string{"Required", "write a name"}},
		{"user with a space", usersOf([]any{edits{"name": "a b", "password": hidden}}),
			"persia:nats.users[0].name", []string{`"a b"`, "alphanumeric characters"}},
		{"user twice", usersOf([]any{edits{"name": "a", "password": hidden}, edits{"name": "a", "password": hidden}}),
			"persia:nats.users[1].name", []string{"users[0]", "its own name"}},
		{"user without a password", usersOf([]any{edits{"name": "a"}}),
			"persia:nats.users[0].password", []string{"Required", "pulumi config set --secret --path 'persia:nats.users[0].password'"}},

		{"certificate without a key", edits{"persia:nats.tls": edits{"clients": edits{"ca": good.CA, "certificate": good.Certificate}}},
			"persia:nats.tls.clients.key", []string{"Required", "PEM"}},
		{"authority that is none", edits{"persia:nats.tls": edits{"clients": written(good, "nothing", "")}},
			"persia:nats.tls.clients.ca", []string{"no certificate"}},
		{"key of another certificate", edits{"persia:nats.tls": edits{"clients": written(good, "", other.Key)}},
			"persia:nats.tls.clients.certificate", []string{"matching pair"}},
		{"certificate of another authority", edits{"persia:nats.tls": edits{"clients": written(good, other.CA, "")}},
			"persia:nats.tls.clients.certificate", []string{"not signed by ca"}},
		{"certificate of another name", edits{"persia:nats.tls": edits{"clients": written(routes, "", "")}},
			"persia:nats.tls.clients.certificate", []string{"persia-nats-service.nats-io.svc"}},
		{"route certificate of another name", edits{"persia:nats.tls": edits{"routes": written(good, "", "")}},
			"persia:nats.tls.routes.certificate", []string{"persia-nats-service-1.persia-nats-service-mgmt.nats-io.svc"}},
	})
}

func TestLoadAcceptsNATS(t *testing.T) {
	clients := testkit.NewCertificate(t, "persia-nats-service.nats-io.svc")
	routes := testkit.NewCertificate(t, "*.persia-nats-service-mgmt.nats-io.svc")
	for name, changes := range map[string]edits{
		"just enough memory":             {"persia:nats.resources.limits.memory": "364Mi"},
		"pending as the payload":         {"persia:nats.maxPending": 52428800},
		"just enough connections":        {"persia:nats.maxConnections": 27},
		"an image of one's own":          {"persia:nats.image": "registry.example.com:5000/team/nats"},
		"users of an image that is able": usersOf([]any{edits{"name": "persia", "password": hidden}}),
		"users of other clients": {
			"persia:nats.users": []any{edits{"name": "persia", "password": hidden}},
			"persia:jobs":       []any{},
		},
		"certificates": {"persia:nats.tls": edits{
			"clients": written(clients, "", ""), "routes": written(routes, "", "")}},
		"the whole cluster": {"persia:nats.operatorScope": "cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testkit.Load(t, changes)
			assert.NoError(t, err)
		})
	}
}

// TestNATSOfNoWords checks that the settings of NATS are optional.
func TestNATSOfNoWords(t *testing.T) {
	for name, value := range map[string]any{"without the key": nil, "of an empty object": edits{}} {
		t.Run(name, func(t *testing.T) {
			s, err := testkit.Load(t, edits{"persia:nats": value})
			require.NoError(t, err)
			assert.Equal(t, 1, s.NATS.Size)
			assert.Equal(t, "persia-nats-service", s.NATS.Name)
			assert.Equal(t, "system", s.NATS.NodePool)
			assert.Equal(t, "1Gi", s.NATS.Resources.Limits.Memory().String())
			assert.Equal(t, "500m", s.NATS.Resources.Limits.Cpu().String())
		})
	}
}

func TestNATSDefaults(t *testing.T) {
	s, err := testkit.Load(t, edits{"persia:nats.maxPayload": 1 << 20})
	require.NoError(t, err)
	assert.Equal(t, "nats", s.NATS.Image)
	assert.Equal(t, 4<<20, s.NATS.MaxPending)
	assert.Equal(t, 65536, s.NATS.MaxConnections)
	assert.Equal(t, "10s", s.NATS.WriteDeadline)
	assert.True(t, s.NATS.Spread)
	assert.True(t, s.NATS.ConfigReload)
	assert.False(t, s.NATS.Metrics)
	assert.Equal(t, config.ScopeNamespace, s.NATS.OperatorScope)
}

// TestSecretsAreNotPrinted checks that no message contains a password, right or misplaced.
func TestSecretsAreNotPrinted(t *testing.T) {
	for name, changes := range map[string]edits{
		"not fit for a URL":   {"persia:nats.users": []any{edits{"name": "a", "password": hidden + "@"}}},
		"a number":            {"persia:nats.users": []any{edits{"name": "a", "password": 24681012}}},
		"in place of a user":  {"persia:nats.users": []any{hidden}},
		"in place of a list":  {"persia:nats.users": hidden},
		"in a list":           {"persia:nats.users": []any{edits{"name": "a", "password": []any{hidden}}}},
		"in an object":        {"persia:nats.users": []any{edits{"name": "a", "password": edits{"is": hidden}}}},
		"in a misspelt field": {"persia:nats.users": []any{edits{"name": "a", "pasword": hidden}}},
		"in place of the key": {"persia:nats": hidden},
		"as a key of TLS":     {"persia:nats.tls": edits{"clients": edits{"ca": hidden, "certificate": hidden, "key": hidden}}},
		"in place of TLS":     {"persia:nats.tls": hidden},
		"beside other mistakes": {"persia:nats.size": 0, "persia:nats.maxPending": 1,
			"persia:nats.users": []any{edits{"name": "", "password": hidden}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testkit.Load(t, changes)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "persia:nats")
			assert.NotContains(t, err.Error(), hidden)
			assert.NotContains(t, err.Error(), "24681012")
		})
	}
	s, err := testkit.Load(t, usersOf([]any{edits{"name": "a", "password": hidden}}))
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v %s", s.NATS, s.NATS, s.NATS, s.NATS.Users[0].Password), hidden)
	assert.Equal(t, hidden, string(s.NATS.Users[0].Password))
}

func TestNatsWarned(t *testing.T) {
	testkit.Warned(t, []testkit.Refusal{
		{"messages smaller than PERSIA's", edits{"persia:nats.maxPayload": 1048576}, "persia:nats.maxPayload", []string{"1048576 bytes are less than the 52428800", "omit it"}},
		{"messages of a job", edits{"persia:jobs[0].nats": edits{"maxPayload": 50}}, "persia:jobs[0].nats.maxPayload", []string{"50 bytes"}},
		{"messages as large as PERSIA's", edits{"persia:nats.maxPayload": 52428800}, "persia:nats.maxPayload", nil},
	})
}

// written returns a certificate in the form of a stack file, with some parts replaced.
func written(c testkit.Certificate, ca, key string) edits {
	parts := edits{"ca": c.CA, "certificate": c.Certificate, "key": c.Key}
	if ca != "" {
		parts["ca"] = ca
	}
	if key != "" {
		parts["key"] = key
	}
	return parts
}

// TestDatesOfCertificates checks that a certificate that no client accepts leads to a warning, and
// not to an error: the stack was valid when it was written.
func TestDatesOfCertificates(t *testing.T) {
	const clients = "persia:nats.tls.clients"
	now := time.Now()
	from := func(first, last time.Duration) edits {
		c := testkit.ValidCertificate(t, now.Add(first), now.Add(last), "persia-nats-service.nats-io.svc")
		return edits{"persia:nats.tls": edits{"clients": edits{"ca": c.CA, "certificate": c.Certificate, "key": c.Key}}}
	}
	const day = 24 * time.Hour
	date := func(after time.Duration) string { return now.Add(after).UTC().Format(time.DateOnly) }
	testkit.Warned(t, []testkit.Refusal{
		{"certificate that has ended", from(-9*day, -2*day), clients + ".certificate", []string{`"CN=server" ended on ` + date(-2*day), "set a new one"}},
		{"authority that has ended", from(-9*day, -2*day), clients + ".ca", []string{`"CN=authority" ended on ` + date(-2*day)}},
		{"certificate of tomorrow", from(2*day, 9*day), clients + ".certificate", []string{`"CN=server" begins on ` + date(2*day), "valid now"}},
		{"certificate of today", from(-day, day), clients + ".certificate", nil},
		{"authority of today", from(-day, day), clients + ".ca", nil},
	})
}

// twoJobs returns the base stack with edits and a second job.
func twoJobs(t *testing.T, changes edits) func(string) (string, bool) {
	t.Helper()
	second := testkit.Edit(t, testkit.Parse(t, testkit.Base)["persia:jobs"], []string{"0", "name"}, "second").([]any)[0]
	all := edits{"persia:jobs[1]": second, "persia:nodePools[0].nodes": 8, "persia:nodePools[1].autoscaling.maxNodes": 20,
		"persia:nodePools[2].nodes": 8, "persia:cluster.systemPool.nodes": 6}
	for path, value := range changes {
		all[path] = value
	}
	return testkit.File(t, all)
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
	assert.Equal(t, s.NATS, first.NATS, "the first job has the stack's own")
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
			if kind.Priority == config.PriorityNATS.Value {
				pods[pool.Name+": "+kind.Name] += kind.Count
			}
		}
	}
	assert.Equal(t, map[string]int{"system: NATS server of train": 3, "loaders: NATS server of second": 5}, pods)
}

func TestNATSWithoutJobs(t *testing.T) {
	s, err := testkit.Load(t, edits{"persia:jobs": []any{}})
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
			if kind.Priority == config.PriorityNATS.Value {
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
	good := testkit.NewCertificate(t, "persia-nats-service.nats-io.svc")
	for _, c := range []testkit.Refusal{
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
			found := testkit.LineOf(t, err, c.Path)
			for _, part := range c.Says {
				assert.Contains(t, found, part)
			}
		})
	}
	wildcard := testkit.NewCertificate(t, "*.nats-io.svc")
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

package natsspec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config/natsspec"
	"persia/internal/certtest"
	"persia/internal/stacktest"
)

type edits = stacktest.Edits

// TestRefused checks the message for each mistake.
func TestRefused(t *testing.T) {
	stacktest.Refused(t, []stacktest.Refusal{
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
	good := certtest.New(t, "persia-nats-service.nats-io.svc")
	other := certtest.New(t, "persia-nats-service.nats-io.svc")
	routes := certtest.New(t, "*.persia-nats-service-mgmt.nats-io.svc")
	stacktest.Refused(t, []stacktest.Refusal{
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
	clients := certtest.New(t, "persia-nats-service.nats-io.svc")
	routes := certtest.New(t, "*.persia-nats-service-mgmt.nats-io.svc")
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
			_, err := stacktest.Load(t, changes)
			assert.NoError(t, err)
		})
	}
}

// TestNATSOfNoWords checks that the settings of NATS are optional.
func TestNATSOfNoWords(t *testing.T) {
	for name, value := range map[string]any{"without the key": nil, "of an empty object": edits{}} {
		t.Run(name, func(t *testing.T) {
			s, err := stacktest.Load(t, edits{"persia:nats": value})
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
	s, err := stacktest.Load(t, edits{"persia:nats.maxPayload": 1 << 20})
	require.NoError(t, err)
	assert.Equal(t, "nats", s.NATS.Image)
	assert.Equal(t, 4<<20, s.NATS.MaxPending)
	assert.Equal(t, 65536, s.NATS.MaxConnections)
	assert.Equal(t, "10s", s.NATS.WriteDeadline)
	assert.True(t, s.NATS.Spread)
	assert.True(t, s.NATS.ConfigReload)
	assert.False(t, s.NATS.Metrics)
	assert.Equal(t, natsspec.ScopeNamespace, s.NATS.OperatorScope)
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
			_, err := stacktest.Load(t, changes)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "persia:nats")
			assert.NotContains(t, err.Error(), hidden)
			assert.NotContains(t, err.Error(), "24681012")
		})
	}
	s, err := stacktest.Load(t, usersOf([]any{edits{"name": "a", "password": hidden}}))
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v %s", s.NATS, s.NATS, s.NATS, s.NATS.Users[0].Password), hidden)
	assert.Equal(t, hidden, string(s.NATS.Users[0].Password))
}

func TestWarned(t *testing.T) {
	stacktest.Warned(t, []stacktest.Refusal{
		{"messages smaller than PERSIA's", edits{"persia:nats.maxPayload": 1048576}, "persia:nats.maxPayload", []string{"1048576 bytes are less than the 52428800", "omit it"}},
		{"messages of a job", edits{"persia:jobs[0].nats": edits{"maxPayload": 50}}, "persia:jobs[0].nats.maxPayload", []string{"50 bytes"}},
		{"messages as large as PERSIA's", edits{"persia:nats.maxPayload": 52428800}, "persia:nats.maxPayload", nil},
	})
}

// written returns a certificate in the form of a stack file, with some parts replaced.
func written(c certtest.Certificate, ca, key string) edits {
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
		c := certtest.Valid(t, now.Add(first), now.Add(last), "persia-nats-service.nats-io.svc")
		return edits{"persia:nats.tls": edits{"clients": edits{"ca": c.CA, "certificate": c.Certificate, "key": c.Key}}}
	}
	const day = 24 * time.Hour
	date := func(after time.Duration) string { return now.Add(after).UTC().Format(time.DateOnly) }
	stacktest.Warned(t, []stacktest.Refusal{
		{"certificate that has ended", from(-9*day, -2*day), clients + ".certificate", []string{`"CN=server" ended on ` + date(-2*day), "set a new one"}},
		{"authority that has ended", from(-9*day, -2*day), clients + ".ca", []string{`"CN=authority" ended on ` + date(-2*day)}},
		{"certificate of tomorrow", from(2*day, 9*day), clients + ".certificate", []string{`"CN=server" begins on ` + date(2*day), "valid now"}},
		{"certificate of today", from(-day, day), clients + ".certificate", nil},
		{"authority of today", from(-day, day), clients + ".ca", nil},
	})
}

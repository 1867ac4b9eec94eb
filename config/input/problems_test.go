package input

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestProblemsArePrintedByPath(t *testing.T) {
	var p Problems
	require.NoError(t, p.Err())
	list := field.NewPath("persia:nodePools")
	p.Invalid(list.Index(10).Child("nodes"), 0, "must be at least %d", 1)
	p.Duplicate(list.Index(2).Child("name"), "a", "is that of nodePools[%d]", 1)
	p.Required(list.Index(2).Child("machineType"), "write a machine type")
	p.Forbidden(list.Index(1).Child("spot"), "is not for this pool")
	p.Forbidden(list.Index(1).Child("spot"), "is not for this pool")
	Form(&p, list.Index(3).Child("name"), "name", "")
	Form(&p, list.Index(3).Child("name"), "name", "system")
	p.AtMost(3, list.Index(4).Child("name"), "long", "the limit of GKE")
	assert.False(t, p.None())
	assert.EqualError(t, p.Err(), `stack configuration: 6 problems
persia:nodePools[1].spot: is not for this pool
persia:nodePools[2].machineType: Required value: write a machine type
persia:nodePools[2].name: Duplicate value: "a": is that of nodePools[1]
persia:nodePools[3].name: Required value: write a name
persia:nodePools[4].name: Invalid value: "long": has 4 characters and must have at most 3, the limit of GKE; choose a shorter name
persia:nodePools[10].nodes: Invalid value: 0: must be at least 1`)
}

// TestProblemsBelowUndecodable checks that an undecodable value is reported once.
func TestProblemsBelowUndecodable(t *testing.T) {
	var p Problems
	cluster := field.NewPath("persia:cluster")
	p.Undecodable(cluster.Child("network"), "a", "must be an object")
	p.Required(cluster.Child("network", "nodes"), "write a range")
	p.Required(cluster.Child("networks"), "write some")
	p.Unreadable(cluster.Child("nam"), "unknown field")
	p.Missing(field.NewPath("persia:nats"), "write it")
	p.Invalid(field.NewPath("persia:nats").Child("size"), 0, "must be at least 1")
	assert.False(t, p.Decoded(cluster))
	assert.False(t, p.Decoded(cluster.Child("network")))
	assert.True(t, p.Decoded(cluster.Child("network", "nodes")), "it was not decoded itself, and nothing below it was wrong")
	assert.True(t, p.Decoded(field.NewPath("persia:clusters")))
	assert.EqualError(t, p.Err(), `stack configuration: 4 problems
persia:cluster.nam: unknown field
persia:cluster.network: Invalid value: "a": must be an object
persia:cluster.networks: Required value: write some
persia:nats: Required value: write it`)
}

func TestProblemsAreReportedWhereTheUserWrote(t *testing.T) {
	var p Problems
	p.written = map[string]string{
		"persia:jobs[1]":                 "persia:jobs[0].manifest(train.yml).spec",
		"persia:jobs[1].name":            "persia:jobs[0].manifest(train.yml).metadata.name",
		"persia:jobs[1].nnWorker":        "persia:jobs[0].manifest(train.yml).spec.trainer",
		"persia:jobs[2]":                 "persia:jobs[1]",
		"persia:jobs[1].nnWorker.image":  "persia:jobs[0].nnWorker.image",
		"persia:jobs[1].limits[some.io]": "elsewhere",
	}
	for path, want := range map[string]string{
		"persia:jobs[0].name":              "persia:jobs[0].name",
		"persia:jobs[1].name":              "persia:jobs[0].manifest(train.yml).metadata.name",
		"persia:jobs[1].env[0].name":       "persia:jobs[0].manifest(train.yml).spec.env[0].name",
		"persia:jobs[1].nnWorker.replicas": "persia:jobs[0].manifest(train.yml).spec.trainer.replicas",
		"persia:jobs[1].nnWorker.image":    "persia:jobs[0].nnWorker.image",
		"persia:jobs[2].name":              "persia:jobs[1].name",
		"persia:jobs[1].limits[some.io]":   "elsewhere",
	} {
		assert.Equal(t, want, p.pathOf(path), path)
	}
	p.Undecodable(field.NewPath("persia:jobs").Index(2), "a", "must be an object")
	assert.True(t, p.Decoded(field.NewPath("persia:jobs").Index(1)))
	assert.False(t, p.Decoded(field.NewPath("persia:jobs").Index(2)))
}

func TestParseQuantity(t *testing.T) {
	for text, want := range map[string]int64{"80": 80, "600Gi": 600 << 30, "+1.5k": 1500} {
		q, err := ParseQuantity(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, q.Value(), text)
	}
	for _, text := range []string{"", "big", "1 Gi", "1e99999999", "10GB"} {
		_, err := ParseQuantity(text)
		assert.Error(t, err, text)
	}
}

func TestNearest(t *testing.T) {
	fields := []string{"nodes", "name", "zones", "machineType", "gpu"}
	for word, want := range map[string][]string{
		"node": {"nodes"}, "machinetyp": {"machineType"}, "nones": {"nodes", "zones"}, "colour": nil,
	} {
		assert.Equal(t, want, Nearest(word, fields), word)
	}
	assert.Equal(t, "a, b or c", Or([]string{"a", "b", "c"}))
	assert.Equal(t, "a and b", And([]string{"a", "b"}))
	assert.Equal(t, "a", And([]string{"a"}))
}

func TestForms(t *testing.T) {
	const key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
	for name, test := range map[string]struct{ form, text, want string }{
		"region":                 {"region", "us-central1", ""},
		"no region":              {"region", "", "write a region"},
		"zone for a region":      {"region", "us-central1-a", `"us-central1-a": is a zone; write the region, us-central1`},
		"misspelt region":        {"region", "central", "must be a region"},
		"key":                    {"kmsKey", key, ""},
		"version of a key":       {"kmsKey", key + "/cryptoKeyVersions/3", "without a version"},
		"host":                   {"host", "a.example", ""},
		"address of a host":      {"host", "10.0.0.2", ""},
		"host with a space":      {"host", "a b", `"a b": must be an address`},
		"directory":              {"directory", "/a/b", ""},
		"no directory":           {"directory", "", "write an absolute path"},
		"relative directory":     {"directory", "a", `"a": must be absolute; write /a`},
		"directory with a dot":   {"directory", "/a/./b", "write /a/b"},
		"root":                   {"directory", "/", "below the root"},
		"directory with a colon": {"directory", "/a:b", "colon"},
	} {
		t.Run(name, func(t *testing.T) {
			var p Problems
			Form(&p, field.NewPath("persia:key"), test.form, test.text)
			p.Advise(func(Edits) *Problems { return &Problems{} })
			if test.want == "" {
				assert.NoError(t, p.Err())
				return
			}
			require.ErrorContains(t, p.Err(), "1 problem\n")
			assert.ErrorContains(t, p.Err(), test.want)
		})
	}
}

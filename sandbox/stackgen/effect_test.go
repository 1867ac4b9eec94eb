package stackgen

import (
	"encoding/json"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plan returns all that the program registers for a stack, as text.
func plan(t *testing.T, s Stack) (string, error) {
	t.Helper()
	recorder, err := deploy(s, filepath.Join(repository, "examples"))
	if err != nil {
		return "", err
	}
	registered := map[string]any{}
	for _, r := range recorder.Resources {
		rpc, inputs := r.RegisterRPC, maps.Clone(r.Inputs)
		for _, path := range rpc.GetIgnoreChanges() {
			delete(inputs, resource.PropertyKey(path)) // such as a random token, which stays as it was at first
		}
		registered[r.URN] = []any{
			plain(resource.NewProperty(inputs)), slices.Sorted(slices.Values(rpc.GetDependencies())), rpc.GetProtect(), rpc.GetRetainOnDelete(),
			rpc.GetIgnoreChanges(), rpc.GetReplaceOnChanges(), rpc.GetDeleteBeforeReplace(), rpc.GetImportId(),
			rpc.GetCustomTimeouts().GetCreate(), rpc.GetCustomTimeouts().GetUpdate(), rpc.GetCustomTimeouts().GetDelete(),
		}
	}
	text, err := json.Marshal(registered)
	require.NoError(t, err)
	return string(text), nil
}

// withoutEffect are the keys whose effect this test does not see, with the tests that do. Some need
// a second change, some are other names, and some change the capacity plan alone.
var withoutEffect = map[string]string{
	"Cache.credentials":                    "TestCaches",
	"Cluster.encryption":                   "TestEncryptedSecrets",
	"Cluster.region":                       "TestGoldenPlans",
	"Cluster.replace":                      "TestClusterWithJobsIsNotReplaced",
	"CacheCredentials.passwordSecret":      "TestCaches",
	"CacheCredentials.username":            "TestCaches",
	"ExistingCluster.systemPool":           "TestPoolsOfAnExistingCluster",
	"Filestore.ip":                         "TestSources",
	"Job.embeddingServer":                  "TestSpellings",
	"Job.checkpointSeconds":                "TestTrainings",
	"Job.middlewareServer":                 "TestSpellings",
	"Job.queue":                            "TestGoldenPlans",
	"Job.restartSeconds":                   "TestTrainings",
	"Job.restartPolicy":                    "TestOperatorPlan",
	"Job.restart_policy":                   "TestSpellings",
	"MachineGPU.count":                     "TestDescribedMachine",
	"MachineGPU.type":                      "TestDescribedMachine",
	"MachineType.cpus":                     "TestDescribedMachine",
	"MachineType.gpu":                      "TestDescribedMachine",
	"MachineType.hoursBetweenFailures":     "TestTrainings",
	"MachineType.hourlyPrice":              "TestPlanWithoutAPrice",
	"MachineType.memory":                   "TestDescribedMachine",
	"MachineType.spotHourlyPrice":          "TestSpotPlan",
	"MachineType.spotHoursBetweenFailures": "TestSpotPlan",
	"Pool.queuedProvisioning":              "TestNodePoolSettings",
	"Pool.spareNodes":                      "TestCapacityRefuses",
	"config.persia:cluster":                "TestGoldenPlans",
	"config.persia:machineTypes":           "TestDescribedMachine",
	"config.persia:images":                 "TestCaches",
	"config.persia:operator":               "TestOperatorPlan",
}

// TestEveryKeyHasAnEffect changes each key of the program's own by itself, in one of the
// stacks to begin with, and compares the plans.
func TestEveryKeyHasAnEffect(t *testing.T) {
	schema, begin := read(t)
	files := os.DirFS(filepath.Join(repository, "examples"))
	plans := make([]string, len(begin))
	for i, s := range begin {
		var err error
		plans[i], err = plan(t, s)
		require.NoError(t, err)
		again, err := plan(t, s)
		require.NoError(t, err)
		require.Equal(t, plans[i], again, "the program is not deterministic")
	}
	// changes reports whether a change of a key changes the plan.
	changes := func(key Key) bool {
		for try, accepted := 0, 0; try < 2000 && accepted < 40; try++ {
			from := try % len(begin)
			m := &maker{schema: schema, Rand: rand.New(rand.NewPCG(uint64(try), 7))}
			changed := m.changeKey(begin[from], key)
			if changed.String() == begin[from].String() || changed.Check(files) != nil {
				continue
			}
			accepted++
			if changed, err := plan(t, changed); err == nil && changed != plans[from] {
				return true
			}
		}
		return false
	}
	defined := definedTests(t)
	for key, test := range withoutEffect {
		assert.Equal(t, 1, defined[test], "%s: tests with the name %s", key, test)
	}
	for _, key := range schema.Keys() {
		if !strings.HasPrefix(key.Definition, "Kubernetes") && withoutEffect[key.String()] == "" {
			assert.True(t, changes(key), "no change of %s changes the plan", key)
		}
	}
}

// definedTests returns how many tests have each name.
func definedTests(t *testing.T) map[string]int {
	t.Helper()
	tests := map[string]int{}
	function := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	require.NoError(t, fs.WalkDir(os.DirFS(repository), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join(repository, path))
		for _, match := range function.FindAllSubmatch(text, -1) {
			tests[string(match[1])]++
		}
		return err
	}))
	return tests
}

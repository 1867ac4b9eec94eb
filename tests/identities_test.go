package tests

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"persia/internal/programtest"
	"persia/internal/testkit"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// grantsOf are the members that may use a bucket, by the names of their grants.
func grantsOf(t *testing.T, r *testkit.Recorder, bucket string) map[string]string {
	t.Helper()
	members := map[string]string{}
	for _, grant := range r.Some(testkit.BucketGrant) {
		if testkit.At(t, grant, "bucket") == bucket {
			members[grant.Name] = testkit.At(t, grant, "member").(string)
		}
	}
	return members
}

// twoJobs is dev with two jobs, two buckets, and what each job mounts of them.
func twoJobs(t *testing.T, mounts map[string][]string) map[string]string {
	t.Helper()
	configuration := programtest.ReadStack(t, "dev")
	configuration["persia:storage"] = `[
		{"name": "checkpoints", "size": "1Ti", "gcsFuse": {"bucket": "shared-checkpoints"}},
		{"name": "data", "size": "1Ti", "gcsFuse": {"bucket": "shared-data"}}]`
	programtest.Edit(t, configuration, "persia:nodePools", func(pools any) { pools.([]any)[0].(map[string]any)["nodes"] = 4 })
	var jobs []map[string]any
	require.NoError(t, json.Unmarshal([]byte(configuration["persia:jobs"]), &jobs))
	for _, name := range slices.Sorted(maps.Keys(mounts)) {
		job, list := maps.Clone(jobs[0]), []any{}
		for _, volume := range mounts[name] {
			list = append(list, map[string]any{"volume": volume, "mountPath": "/" + volume})
		}
		job["name"], job["mounts"] = name, list
		jobs = append(jobs, job)
	}
	text, err := json.Marshal(jobs[1:])
	require.NoError(t, err)
	configuration["persia:jobs"] = string(text)
	return configuration
}

// TestOneIdentityForEachStackAndJob checks that stacks of one project, and jobs of one stack, have
// a service account each, because IAM knows an account by project, namespace and name. Each grant
// is for one account, so a job or a stack that goes takes away only its own access.
func TestOneIdentityForEachStackAndJob(t *testing.T) {
	configuration := twoJobs(t, map[string][]string{"first": {"checkpoints", "data"}, "second": {"data"}})
	deployAs := func(organization, stack string) *testkit.Recorder {
		r, err := programtest.Run(t, pulumi.RunInfo{Organization: organization, Stack: stack, Config: configuration}, nil)
		require.NoError(t, err)
		return r
	}
	owners := map[string]string{}
	for _, stack := range []string{"acme/dev", "acme/prod", "acme/Dev", "acme/de_v", "acme/de-v", "other/dev"} {
		organization, name, _ := strings.Cut(stack, "/")
		r := deployAs(organization, name)
		for _, job := range []string{"first", "second"} {
			account := programtest.AccountOf(t, r, job)
			assert.Empty(t, owners[account], "%s of %s %s is that of another", account, stack, job)
			owners[account] = stack + " " + job
			assert.True(t, strings.HasPrefix(account, job+"."), account)
		}
		member := func(job string) string {
			return "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/" +
				"my-project.svc.id.goog/subject/ns/persia/sa/" + programtest.AccountOf(t, r, job)
		}
		assert.Equal(t, map[string]string{"gs://shared-checkpoints/first": member("first")}, grantsOf(t, r, "shared-checkpoints"),
			"a job that does not mount a bucket does not reach it")
		assert.Equal(t, map[string]string{"gs://shared-data/first": member("first"), "gs://shared-data/second": member("second")},
			grantsOf(t, r, "shared-data"))
	}
	assert.Len(t, owners, 12)
}

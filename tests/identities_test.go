package tests

import (
	"encoding/json"
	"strings"
	"testing"

	"persia/internal/programtest"
	"persia/internal/testkit"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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

// twoJobs is dev with a second job, two buckets, and what each job mounts of them.
func twoJobs(t *testing.T, mounts [2][]string) map[string]string {
	t.Helper()
	configuration := programtest.ReadStack(t, "dev")
	configuration["persia:storage"] = `[
		{"name": "checkpoints", "size": "1Ti", "gcsFuse": {"bucket": "shared-checkpoints"}},
		{"name": "data", "size": "1Ti", "gcsFuse": {"bucket": "shared-data"}}]`
	programtest.Edit(t, configuration, "persia:nodePools", func(pools any) {
		for _, pool := range pools.([]any) {
			pool.(map[string]any)["nodes"] = 4
		}
	})
	var first map[string]any
	programtest.Edit(t, configuration, "persia:jobs", func(jobs any) { first = jobs.([]any)[0].(map[string]any) })
	jobs := []any{}
	for i, volumes := range mounts {
		job := map[string]any{}
		for name, value := range first {
			job[name] = value
		}
		job["name"] = []string{"first", "second"}[i]
		list := []any{}
		for _, volume := range volumes {
			list = append(list, map[string]any{"volume": volume, "mountPath": "/" + volume})
		}
		job["mounts"] = list
		jobs = append(jobs, job)
	}
	text, err := json.Marshal(jobs)
	require.NoError(t, err)
	configuration["persia:jobs"] = string(text)
	return configuration
}

// TestGrantsComeAfterTheCluster checks that no grant to a pod can reach IAM before the cluster,
// with which IAM creates the project's pool of Workload Identity.
func TestGrantsComeAfterTheCluster(t *testing.T) {
	r := programtest.MustDeploy(t, twoJobs(t, [2][]string{{"checkpoints", "data"}, {"data"}}), nil)
	cluster := r.All(t, testkit.Cluster)[0]
	for _, grant := range r.All(t, testkit.BucketGrant) {
		assert.Contains(t, r.Before(grant), cluster.URN, grant.URN)
	}
}

// TestOneIdentityForEachStackAndJob checks that stacks of one project, and jobs of one stack, have
// a service account each, because IAM knows an account by project, namespace and name. Each grant
// is for one account, so a job or a stack that goes takes away only its own access.
func TestOneIdentityForEachStackAndJob(t *testing.T) {
	configuration := twoJobs(t, [2][]string{{"checkpoints", "data"}, {"data"}})
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

			registered := testkit.Object[corev1.ServiceAccount](t, r.One(t, "kubernetes:core/v1:ServiceAccount", job))
			assert.Equal(t, account, registered.Name)
			assert.False(t, *registered.AutomountServiceAccountToken)
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

// TestGrantComesBeforePods: a pod that starts without it cannot mount the bucket.
func TestGrantComesBeforePods(t *testing.T) {
	r, err := programtest.Deploy(t, twoJobs(t, [2][]string{{"checkpoints"}, {"data"}}))
	require.NoError(t, err)
	grant := r.One(t, testkit.BucketGrant, "gs://shared-data/second")
	account := r.One(t, "kubernetes:core/v1:ServiceAccount", "second")
	before := r.Before(r.One(t, testkit.StatefulSet, "second-dataloader"))
	assert.Contains(t, before, grant.URN)
	assert.Contains(t, before, account.URN)
}

package tests

import (
	"strings"
	"testing"

	"persia/internal/programtest"
	"persia/internal/testkit"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOneIdentityForEachStackAndJob: IAM knows an account by project, namespace and name, so stacks of one
// project, and jobs of one stack, have an account each. A job that does not mount a bucket does not reach it.
func TestOneIdentityForEachStackAndJob(t *testing.T) {
	configuration := programtest.ReadStack(t, "examples/Pulumi.jobs.yaml", testkit.Edits{"persia:jobs[1].mounts": nil})
	owners := map[string]string{}
	for _, stack := range []string{"acme/dev", "acme/prod", "acme/Dev", "acme/de_v", "acme/de-v", "other/dev"} {
		organization, name, _ := strings.Cut(stack, "/")
		r := testkit.Must(programtest.Run(t, pulumi.RunInfo{Organization: organization, Stack: name, Config: configuration}, nil))(t)
		for _, job := range []string{"ranking", "retrieval"} {
			account := testkit.At(t, r.One(t, testkit.StatefulSet, job+"-nn-worker"), "spec.template.spec.serviceAccountName").(string)
			assert.Empty(t, owners[account], "%s of %s %s is another's", account, stack, job)
			owners[account] = stack + " " + job
			if job == "ranking" {
				grants := r.All(t, testkit.BucketGrant)
				require.Len(t, grants, 1)
				assert.Contains(t, testkit.At(t, grants[0], "member"), "/subject/ns/persia/sa/"+account)
			}
		}
	}
}

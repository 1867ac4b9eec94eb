package stack

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/config/jobspec"
	"persia/infra/iam"
	"persia/infra/stackid"
	"persia/infra/storage"
	"persia/workload/persia"
)

// grantBuckets lets a job's pods reach the buckets that it mounts. A grant belongs to
// the job and to the bucket, and to no volume, so that it lasts as long as both.
func grantBuckets(ctx *pulumi.Context, cfg *config.Stack, job *jobspec.Job, volumes []*storage.Volume) ([]pulumi.CustomResource, error) {
	var grants []pulumi.CustomResource
	for i, v := range cfg.Storage {
		if volumes[i].Bucket == nil || !cfg.Mounts(job, v.Name) {
			continue
		}
		grant, err := iam.GrantBucket(ctx, fmt.Sprintf("gs://%s/%s", v.GCSFuse.Bucket, job.Name), iam.BucketGrant{
			Project:        cfg.Project,
			Bucket:         volumes[i].Bucket,
			Namespace:      persia.NamespaceName,
			ServiceAccount: stackid.Of(ctx).ServiceAccount(job.Name),
		})
		if err != nil {
			return nil, err
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// serviceAccounts are the Kubernetes service accounts of the jobs, by name.
func serviceAccounts(ctx *pulumi.Context, cfg *config.Stack) pulumi.StringMap {
	accounts := pulumi.StringMap{}
	for _, job := range cfg.Jobs {
		if job.Engine == jobspec.EngineStatefulSet {
			accounts[job.Name] = pulumi.String(stackid.Of(ctx).ServiceAccount(job.Name))
		}
	}
	return accounts
}

package stack

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/before"
	"persia/infra/gke"
	"persia/infra/iam"
	"persia/infra/storage"
	"persia/workload/persia"
)

// grantBuckets lets a job's pods reach the buckets that it mounts. A grant belongs to the job and
// to the bucket, and to no volume, so that it lasts as long as both.
func grantBuckets(ctx *pulumi.Context, cfg *config.Stack, cluster *gke.Cluster, job *config.Job, volumes []*storage.Volume, inCluster pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	var mounted []iam.Bucket
	for i, v := range cfg.Storage {
		if volumes[i].Bucket != nil && job.MountsVolume(v.Name) {
			mounted = append(mounted, iam.Bucket{Name: v.GCSFuse.Bucket, ID: volumes[i].Bucket})
		}
	}
	if len(mounted) == 0 {
		return nil, nil
	}
	granted, err := iam.NewBucketGrants(ctx, job.Name, iam.BucketGrantsArgs{
		Project:        cfg.Project,
		Buckets:        mounted,
		Namespace:      persia.NamespaceName,
		ServiceAccount: before.Of(ctx).ServiceAccount(job.Name),
		Needs:          []pulumi.CustomResource{cluster.ControlPlane},
	}, inCluster)
	if err != nil {
		return nil, err
	}
	return granted.Grants, nil
}

// serviceAccounts returns the Kubernetes service account of each job.
func serviceAccounts(ctx *pulumi.Context, cfg *config.Stack) pulumi.StringMap {
	accounts := pulumi.StringMap{}
	for _, job := range cfg.Jobs {
		if job.Engine != config.EngineOperator {
			accounts[job.Name] = pulumi.String(before.Of(ctx).ServiceAccount(job.Name))
		}
	}
	return accounts
}

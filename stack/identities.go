package stack

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/before"
	"persia/infra/iam"
	"persia/kube"
	"persia/workload/persia"
)

// grantBuckets lets a job's pods reach the buckets that it mounts. A grant belongs to the job and
// to the bucket, and to no volume, so that it lasts as long as both.
func (d *deployment) grantBuckets(job *config.Job) []pulumi.CustomResource {
	var mounted []iam.Bucket
	for i, v := range d.cfg.Storage {
		if bucket := d.volumes[i].Bucket; bucket != nil && job.MountsVolume(v.Name) {
			mounted = append(mounted, iam.Bucket{Name: v.GCSFuse.Bucket, ID: bucket})
		}
	}
	if len(mounted) == 0 {
		return nil
	}
	return iam.NewBucketGrants(d.in, job.Name, iam.BucketGrantsArgs{
		Project:        d.cfg.Project,
		Buckets:        mounted,
		Namespace:      persia.NamespaceName,
		ServiceAccount: before.Of(d.ctx).ServiceAccount(job.Name),
		Needs:          kube.Needs(d.cluster.ControlPlane),
	})
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

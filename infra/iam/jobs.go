package iam

import (
	"fmt"

	gcs "github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/storage"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/gcp"
)

// BucketGrant describes the right of a job's pods to the objects of a bucket.
type BucketGrant struct {
	// Project is the Google Cloud project of the cluster.
	Project string
	// Bucket is the name of the bucket, after which the grant comes.
	Bucket pulumi.StringInput
	// Namespace and ServiceAccount are those of the pods.
	Namespace, ServiceAccount string
}

// GrantBucket lets pods read and write the objects of a bucket by Workload Identity
// Federation for GKE: there is no key. The grant is for this one principal and leaves
// all others of the bucket alone.
func GrantBucket(ctx *pulumi.Context, name string, grant BucketGrant) (pulumi.CustomResource, error) {
	number, err := projectNumber(ctx, grant.Project)
	if err != nil {
		return nil, err
	}
	return gcs.NewBucketIAMMember(ctx, name, &gcs.BucketIAMMemberArgs{
		Bucket: grant.Bucket,
		Role:   pulumi.String(gcp.RoleObjectUser),
		Member: pulumi.String(fmt.Sprintf("principal://iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s/subject/ns/%s/sa/%s",
			number, gcp.WorkloadPool(grant.Project), grant.Namespace, grant.ServiceAccount)),
	})
}

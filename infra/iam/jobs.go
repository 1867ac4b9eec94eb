package iam

import (
	"fmt"

	gcs "github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/storage"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/gcp"
	"persia/kube"
)

// BucketGrantsArgs describes the rights of a job's pods to the objects of buckets.
type BucketGrantsArgs struct {
	// Project is the Google Cloud project of the cluster.
	Project string
	// Buckets are the buckets by their names in the stack file. Each grant comes after its
	// bucket.
	Buckets []Bucket
	// Namespace and ServiceAccount identify the pods.
	Namespace, ServiceAccount string
	// Needs come before the grants: the cluster, if the stack creates it. IAM knows the pods of a
	// project only after the project has a cluster with Workload Identity.
	Needs []pulumi.CustomResource
}

// Bucket is a bucket of the stack, or one that exists.
type Bucket struct {
	Name string
	// ID is the name too, once the bucket exists.
	ID pulumi.StringInput
}

// BucketGrants are the rights of a job's pods to buckets.
type BucketGrants struct {
	pulumi.ResourceState

	// Grants come before the pods.
	Grants []pulumi.CustomResource
}

// NewBucketGrants lets the pods of a job read and write the objects of buckets by Workload
// Identity Federation for GKE, without a key. Each grant names this one principal and leaves the
// others of the bucket alone.
func NewBucketGrants(ctx *pulumi.Context, job string, args BucketGrantsArgs, opts ...pulumi.ResourceOption) (*BucketGrants, error) {
	component := &BucketGrants{}
	if err := ctx.RegisterComponentResource("persia:iam:Buckets", job, component, opts...); err != nil {
		return nil, err
	}
	number, err := projectNumber(ctx, args.Project, component)
	if err != nil {
		return nil, err
	}
	member := fmt.Sprintf("principal://iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s/subject/ns/%s/sa/%s",
		number, gcp.WorkloadPool(args.Project), args.Namespace, args.ServiceAccount)
	for _, bucket := range args.Buckets {
		grant, err := gcs.NewBucketIAMMember(ctx, fmt.Sprintf("gs://%s/%s", bucket.Name, job), &gcs.BucketIAMMemberArgs{
			Bucket: bucket.ID,
			Role:   pulumi.String(gcp.RoleObjectUser),
			Member: pulumi.String(member),
		}, pulumi.Parent(component), kube.After(args.Needs))
		if err != nil {
			return nil, err
		}
		component.Grants = append(component.Grants, grant)
	}
	return component, ctx.RegisterResourceOutputs(component, pulumi.Map{})
}

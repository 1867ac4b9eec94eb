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
	Project string
	// Buckets are the buckets by their names in the stack file. Each grant comes after its bucket.
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

// NewBucketGrants lets the pods of a job read and write the objects of buckets by Workload
// Identity Federation for GKE, without a key. Each grant names this one principal and leaves the
// others of the bucket alone. The grants come before the pods.
func NewBucketGrants(r *kube.Registrar, job string, args BucketGrantsArgs) []pulumi.CustomResource {
	var grants []pulumi.CustomResource
	component := r.Component("persia:iam:Buckets", job)
	number, err := projectNumber(r.Context, args.Project, component.Parent())
	r.Fail(err)
	if r.Err() != nil {
		return nil
	}
	member := fmt.Sprintf("principal://iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s/subject/ns/%s/sa/%s",
		number, gcp.WorkloadPool(args.Project), args.Namespace, args.ServiceAccount)
	for _, bucket := range args.Buckets {
		grant, err := gcs.NewBucketIAMMember(r.Context, fmt.Sprintf("gs://%s/%s", bucket.Name, job), &gcs.BucketIAMMemberArgs{
			Bucket: bucket.ID,
			Role:   pulumi.String(gcp.RoleObjectUser),
			Member: pulumi.String(member),
		}, component.Child(args.Needs))
		r.Fail(err)
		grants = append(grants, grant)
	}
	return grants
}

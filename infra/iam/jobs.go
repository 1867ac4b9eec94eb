package iam

import (
	"crypto/sha256"
	"fmt"
	"strings"

	gcs "github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/storage"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/gcp"
	"persia/kube"
)

// JobAccount is the name of the Kubernetes service account that the pods of a job run
// as. IAM tells service accounts apart by project, namespace and name, but not by
// cluster: jobs of two stacks in one project must not have the same name for theirs, or
// each could read what the other was granted, and lose it when the other is destroyed.
// So the name has the job, the stack, and a hash of the stack's organization, project
// and name, which tells apart what looks alike without capital letters.
func JobAccount(ctx *pulumi.Context, job string) string {
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(kube.StackName(ctx))))[:8]
	return job + "." + kube.LabelName(label(ctx.Stack()), hash)
}

// label is a text with only what a part of a name may have.
func label(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	return strings.Trim(text, "-")
}

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

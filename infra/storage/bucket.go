package storage

import (
	"fmt"

	gcs "github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/storage"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/infra/iam"
	"persia/kube"
)

// gcsFuse is a bucket, mounted by the CSI driver of Cloud Storage FUSE.
func gcsFuse(source config.GCSFuse) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{
			Driver:       gcp.DriverGCSFuse,
			VolumeHandle: source.Bucket,
		},
	}
}

// SidecarAnnotations have GKE put a container into a pod that mounts buckets for
// it, and say what that asks for. It has no limits: a pod would be evicted for a
// checkpoint that is larger than the limit of ephemeral storage.
func SidecarAnnotations(requests capacity.Resources) map[string]string {
	const unlimited = "0"
	return map[string]string{
		"gke-gcsfuse/volumes":                   "true",
		"gke-gcsfuse/cpu-request":               fmt.Sprintf("%dm", requests.MilliCPU),
		"gke-gcsfuse/cpu-limit":                 unlimited,
		"gke-gcsfuse/memory-request":            fmt.Sprint(requests.MemoryBytes),
		"gke-gcsfuse/memory-limit":              unlimited,
		"gke-gcsfuse/ephemeral-storage-request": fmt.Sprint(requests.EphemeralBytes),
		"gke-gcsfuse/ephemeral-storage-limit":   unlimited,
	}
}

// newBucket registers the bucket if it is to be created, and the right of the pods
// to its objects.
func newBucket(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) (backing, error) {
	var bucket pulumi.StringInput = pulumi.String(args.Volume.GCSFuse.Bucket)
	if args.Volume.GCSFuse.Create != nil {
		created, err := createBucket(ctx, name, args, child)
		if err != nil {
			return backing{}, err
		}
		bucket = created.Name
	}
	grant, err := grantBucket(ctx, name, args, bucket, child)
	return backing{resources: []pulumi.CustomResource{grant}}, err
}

func createBucket(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) (*gcs.Bucket, error) {
	create := args.Volume.GCSFuse.Create
	grants, err := grantBucketKey(ctx, name, args, child)
	if err != nil {
		return nil, err
	}
	bucket := &gcs.BucketArgs{
		Project:                  pulumi.String(args.Project),
		Name:                     pulumi.String(args.Volume.GCSFuse.Bucket),
		Location:                 pulumi.String(create.Location),
		UniformBucketLevelAccess: pulumi.Bool(true),
		PublicAccessPrevention:   pulumi.String("enforced"),
		Versioning:               gcs.BucketVersioningArgs{Enabled: pulumi.Bool(create.Versioning)},
		SoftDeletePolicy: gcs.BucketSoftDeletePolicyArgs{
			RetentionDurationSeconds: pulumi.Int(*create.SoftDeleteDays * 24 * 60 * 60),
		},
		Labels: ownerLabels(ctx),
	}
	if create.DeleteAfterDays > 0 {
		bucket.LifecycleRules = deleteAfter(create.DeleteAfterDays)
	}
	if create.KMSKey != "" {
		bucket.Encryption = gcs.BucketEncryptionArgs{DefaultKmsKeyName: pulumi.String(create.KMSKey)}
	}
	if create.DeleteWithStack {
		// Cloud Storage deletes no bucket with objects in it.
		bucket.ForceDestroy = pulumi.Bool(true)
	}
	return gcs.NewBucket(ctx, name, bucket, outliving(args, child), kube.After(grants))
}

// deleteAfter deletes objects of an age, and with versions also those that were
// overwritten.
func deleteAfter(days int) gcs.BucketLifecycleRuleArray {
	return gcs.BucketLifecycleRuleArray{gcs.BucketLifecycleRuleArgs{
		Action:    gcs.BucketLifecycleRuleActionArgs{Type: pulumi.String("Delete")},
		Condition: gcs.BucketLifecycleRuleConditionArgs{Age: pulumi.Int(days), WithState: pulumi.String("ANY")},
	}}
}

// grantBucketKey lets Cloud Storage use the bucket's key, if there is one. Asking
// for its identity in the project makes that.
func grantBucketKey(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	account := func() (string, error) {
		agent, err := gcs.GetProjectServiceAccount(ctx, &gcs.GetProjectServiceAccountArgs{Project: &args.Project})
		if err != nil {
			return "", fmt.Errorf("identity of Cloud Storage in project %s: %w", args.Project, err)
		}
		return agent.EmailAddress, nil
	}
	return grantKey(ctx, name, args, args.Volume.GCSFuse.Create.KMSKey, account, child)
}

// grantBucket lets the pods' service account read and write the bucket's
// objects, through Workload Identity: no key exists.
func grantBucket(ctx *pulumi.Context, name string, args Args, bucket pulumi.StringInput, child pulumi.ResourceOption) (*gcs.BucketIAMMember, error) {
	number, err := iam.ProjectNumber(ctx, args.Project)
	if err != nil {
		return nil, err
	}
	return gcs.NewBucketIAMMember(ctx, name, &gcs.BucketIAMMemberArgs{
		Bucket: bucket,
		Role:   pulumi.String(gcp.RoleObjectUser),
		Member: pulumi.String(principal(number, args)),
	}, child)
}

// principal is a Kubernetes service account as IAM names it.
func principal(projectNumber string, args Args) string {
	return fmt.Sprintf("principal://iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s/subject/ns/%s/sa/%s",
		projectNumber, gcp.WorkloadPool(args.Project), args.Namespace, args.ServiceAccount)
}

// findBucket asks for all buckets of the project that begin with the name: asking
// for the one would fail where it is not there.
func findBucket(ctx *pulumi.Context, project string, source config.GCSFuse) (present, error) {
	found, err := gcs.GetBuckets(ctx, &gcs.GetBucketsArgs{Project: &project, Prefix: &source.Bucket})
	if err != nil {
		return present{}, err
	}
	for _, bucket := range found.Buckets {
		if bucket.Name == source.Bucket {
			return present{
				Found:  Found{ID: bucket.Name},
				labels: bucket.Labels,
				fixed:  []fixed{{"create.location", source.Create.Location, bucket.Location}},
			}, nil
		}
	}
	return present{}, nil
}

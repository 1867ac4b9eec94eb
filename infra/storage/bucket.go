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
)

// bucket is mounted by the CSI driver of Cloud Storage FUSE.
func bucket(s *config.GCSFuse) backend {
	b := backend{
		service: iam.CloudStorage,
		name:    "gs://" + s.Bucket,
		spec: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver:       gcp.DriverGCSFuse,
			VolumeHandle: s.Bucket,
		}},
		register: func(ctx *pulumi.Context, b backing) (registered, error) { return registerBucket(ctx, b, s) },
	}
	if s.Create != nil {
		b.find = func(ctx *pulumi.Context, cloud Cloud) (present, error) { return findBucket(ctx, cloud, s) }
	}
	return b
}

// SidecarAnnotations have GKE add a container to a pod that mounts buckets for it, and say what that requests. It has
// no limits: a pod would be evicted for a checkpoint that is larger than the limit of ephemeral storage.
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

// registerBucket registers the bucket if the stack creates it.
func registerBucket(ctx *pulumi.Context, b backing, s *config.GCSFuse) (registered, error) {
	create := s.Create
	if create == nil {
		return registered{bucket: pulumi.String(s.Bucket)}, nil
	}
	args := &gcs.BucketArgs{
		Project:                  pulumi.String(b.Project),
		Name:                     pulumi.String(s.Bucket),
		Location:                 pulumi.String(create.Location),
		UniformBucketLevelAccess: pulumi.Bool(true),
		PublicAccessPrevention:   pulumi.String("enforced"),
		Versioning:               gcs.BucketVersioningArgs{Enabled: pulumi.Bool(create.Versioning)},
		SoftDeletePolicy: gcs.BucketSoftDeletePolicyArgs{
			RetentionDurationSeconds: pulumi.Int(create.SoftDeleteDays * 24 * 60 * 60),
		},
		Labels: b.labels(),
	}
	if create.DeleteNoncurrent != nil {
		args.LifecycleRules = deleteNoncurrent(create.DeleteNoncurrent)
	}
	if create.KMSKey != "" {
		args.Encryption = gcs.BucketEncryptionArgs{DefaultKmsKeyName: pulumi.String(create.KMSKey)}
	}
	if b.Volume.DeletesData() {
		// Cloud Storage deletes no bucket with objects in it.
		args.ForceDestroy = pulumi.Bool(true)
	}
	created, err := gcs.NewBucket(ctx, b.name, args, b.outliving())
	if err != nil {
		return registered{}, err
	}
	return registered{resources: []pulumi.CustomResource{created}, bucket: created.Name}, nil
}

// deleteNoncurrent deletes old versions of overwritten and deleted objects. All
// conditions of a rule have to hold, so that no live object is ever deleted.
func deleteNoncurrent(rule *config.DeleteNoncurrent) gcs.BucketLifecycleRuleArray {
	condition := gcs.BucketLifecycleRuleConditionArgs{
		WithState:               pulumi.String("ARCHIVED"),
		MatchesPrefixes:         pulumi.ToStringArray([]string{rule.Prefix}),
		DaysSinceNoncurrentTime: pulumi.Int(rule.AfterDays),
		// Without it the provider sends an age of 0, which is fulfilled at once.
		NoAge: pulumi.Bool(true),
	}
	if rule.NewerVersions > 0 {
		condition.NumNewerVersions = pulumi.Int(rule.NewerVersions)
	}
	return gcs.BucketLifecycleRuleArray{gcs.BucketLifecycleRuleArgs{
		Action:    gcs.BucketLifecycleRuleActionArgs{Type: pulumi.String("Delete")},
		Condition: condition,
	}}
}

// findBucket asks for all buckets of the project that begin with the name: asking
// for the one would fail where it does not exist.
func findBucket(ctx *pulumi.Context, cloud Cloud, s *config.GCSFuse) (present, error) {
	found, err := gcs.GetBuckets(ctx, &gcs.GetBucketsArgs{Project: &cloud.Project, Prefix: &s.Bucket}, pulumi.Provider(cloud.Provider))
	if err != nil {
		return present{}, err
	}
	for _, bucket := range found.Buckets {
		if bucket.Name == s.Bucket {
			return present{
				Found:  Found{ID: bucket.Name},
				labels: bucket.Labels,
				fixed:  []fixed{{"create.location", s.Create.Location, bucket.Location}},
			}, nil
		}
	}
	return present{}, nil
}

// Content returns the content of an object.
func Content(ctx *pulumi.Context, bucket, object string, provider pulumi.ProviderResource) (string, error) {
	found, err := gcs.GetBucketObjectContent(ctx, &gcs.GetBucketObjectContentArgs{Bucket: bucket, Name: object}, pulumi.Provider(provider))
	if err != nil {
		return "", fmt.Errorf("read gs://%s/%s: %w", bucket, object, err)
	}
	if found.Content == nil {
		return "", fmt.Errorf("read gs://%s/%s: no content", bucket, object)
	}
	return *found.Content, nil
}

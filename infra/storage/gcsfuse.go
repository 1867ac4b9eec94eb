package storage

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/organizations"
	gcs "github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/storage"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
)

// gcsFuse is a bucket, mounted by the CSI driver of Cloud Storage FUSE.
func gcsFuse(source config.GCSFuse) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{
			Driver:       "gcsfuse.csi.storage.gke.io",
			VolumeHandle: source.Bucket,
		},
	}
}

// PodAnnotations are what a pod must carry to mount volume.
func PodAnnotations(volume config.Volume) map[string]string {
	if volume.GCSFuse == nil {
		return nil
	}
	return map[string]string{"gke-gcsfuse/volumes": "true"}
}

// grantBucket lets the pods' service account read and write the bucket's
// objects, through Workload Identity: no key exists.
func grantBucket(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) error {
	project, err := organizations.LookupProject(ctx, &organizations.LookupProjectArgs{
		ProjectId: &args.Project,
	})
	if err != nil {
		return fmt.Errorf("project %s: %w", args.Project, err)
	}
	_, err = gcs.NewBucketIAMMember(ctx, name, &gcs.BucketIAMMemberArgs{
		Bucket: pulumi.String(args.Volume.GCSFuse.Bucket),
		Role:   pulumi.String("roles/storage.objectUser"),
		Member: pulumi.String(principal(project.Number, args)),
	}, child)
	return err
}

// principal is a Kubernetes service account as IAM names it.
func principal(projectNumber string, args Args) string {
	return fmt.Sprintf("principal://iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s.svc.id.goog/subject/ns/%s/sa/%s",
		projectNumber, args.Project, args.Namespace, args.ServiceAccount)
}

package storage

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/kms"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/organizations"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/kube"
)

// backing is what a volume is over, as far as the stack registers it.
type backing struct {
	// resources come before the volume.
	resources []pulumi.Resource
	// later are fields of the volume that the storage tells.
	later kube.Later
}

// newBacking registers the storage that is to be created, and the rights that pods
// need to reach it.
func newBacking(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) (backing, error) {
	switch volume := args.Volume; {
	case args.Project == "":
		return backing{}, nil
	case volume.GCSFuse != nil:
		return newBucket(ctx, name, args, child)
	case volume.Filestore != nil && volume.Filestore.Create != nil:
		return newFilestore(ctx, name, args, child)
	case volume.PersistentDisk != nil && volume.PersistentDisk.Create != nil:
		return newDisk(ctx, name, args, child)
	default:
		return backing{}, nil
	}
}

// outliving are the options of storage and of what it cannot be read without: it
// stays when the stack goes, and is taken over by the next update. Pulumi ignores
// what to import once it knows the resource.
func outliving(args Args, child pulumi.ResourceOption) pulumi.ResourceOption {
	opts := []pulumi.ResourceOption{child, pulumi.RetainOnDelete(!args.Volume.DeletesData())}
	if args.Found.ID != "" {
		opts = append(opts, pulumi.Import(pulumi.ID(args.Found.ID)))
	}
	return pulumi.Composite(opts...)
}

// grantKey lets a service of Google's use a key, as whom it works in the project.
// The grant stays with the storage, which could not be read without it.
func grantKey(ctx *pulumi.Context, name string, args Args, key, agent string, child pulumi.ResourceOption) ([]pulumi.Resource, error) {
	if key == "" {
		return nil, nil
	}
	grant, err := kms.NewCryptoKeyIAMMember(ctx, name+"-key", &kms.CryptoKeyIAMMemberArgs{
		CryptoKeyId: pulumi.String(key),
		Role:        pulumi.String("roles/cloudkms.cryptoKeyEncrypterDecrypter"),
		Member:      pulumi.String("serviceAccount:" + agent),
	}, child, pulumi.RetainOnDelete(!args.Volume.DeletesData()))
	if err != nil {
		return nil, err
	}
	return []pulumi.Resource{grant}, nil
}

// serviceAgent is the identity that a service of Google has in the project.
func serviceAgent(ctx *pulumi.Context, args Args, service string) (string, error) {
	number, err := projectNumber(ctx, args.Project)
	return fmt.Sprintf("service-%s@%s.iam.gserviceaccount.com", number, service), err
}

func projectNumber(ctx *pulumi.Context, project string) (string, error) {
	found, err := organizations.LookupProject(ctx, &organizations.LookupProjectArgs{ProjectId: &project})
	if err != nil {
		return "", fmt.Errorf("project %s: %w", project, err)
	}
	return found.Number, nil
}

// optional leaves an empty value out.
func optional(value string) pulumi.StringPtrInput {
	if value == "" {
		return nil
	}
	return pulumi.String(value)
}

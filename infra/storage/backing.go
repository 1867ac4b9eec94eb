package storage

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/infra/iam"
	"persia/kube"
)

// backing is what a volume is over, as far as the stack registers it.
type backing struct {
	// resources come before the volume.
	resources []pulumi.CustomResource
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

// grantKey lets a service of Google's use a key, if one is given, as the account that
// it has in the project. The grant stays with the storage, which could not be read
// without it.
func grantKey(ctx *pulumi.Context, name string, args Args, key string, accountOf func() (string, error), child pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	if key == "" {
		return nil, nil
	}
	account, err := accountOf()
	if err != nil {
		return nil, err
	}
	grant, err := iam.GrantKey(ctx, name+"-key", key, account, child, pulumi.RetainOnDelete(!args.Volume.DeletesData()))
	if err != nil {
		return nil, err
	}
	return []pulumi.CustomResource{grant}, nil
}

func serviceAgent(ctx *pulumi.Context, args Args, service string) func() (string, error) {
	return func() (string, error) { return iam.ServiceAgent(ctx, args.Project, service) }
}

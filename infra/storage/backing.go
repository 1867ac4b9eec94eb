package storage

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/infra/iam"
	"persia/kube"
)

// backing has everything that registers the storage of a volume.
type backing struct {
	Args
	// name is the logical name of the storage.
	name string
	// child are the options of everything that belongs to the volume.
	child pulumi.ResourceOption
}

// registered is storage as far as the volume depends on it.
type registered struct {
	// resources come before the volume.
	resources []pulumi.CustomResource
	// later are the fields of the volume that depend on its storage.
	later kube.Later
	// bucket is the name of the bucket that it is.
	bucket pulumi.StringInput
}

// registerBacking registers the storage that the stack creates.
func registerBacking(r *kube.Registrar, args Args, child pulumi.ResourceOption) registered {
	backend := backendOf(args.Volume.Source())
	if r.Err() != nil || args.Existing || backend.register == nil {
		return registered{}
	}
	made, err := backend.register(r.Context, backing{Args: args, name: backend.name, child: child})
	r.Fail(err)
	return made
}

// outliving returns the options of storage that outlives the stack and the volume, unless the stack
// file names it for deletion. The next update takes it over. Pulumi ignores the import of a
// resource that it knows.
func (b backing) outliving(grants []pulumi.CustomResource) pulumi.ResourceOption {
	opts := []pulumi.ResourceOption{b.child, kube.After(grants), pulumi.RetainOnDelete(!b.Volume.DeletesData())}
	if b.Found.ID != "" {
		opts = append(opts, pulumi.Import(pulumi.ID(b.Found.ID)))
	}
	return pulumi.Composite(opts...)
}

// grantKey has a service of Google's granted the use of the storage's key, if there
// is one.
func (b backing) grantKey(ctx *pulumi.Context, service iam.Service) ([]pulumi.CustomResource, error) {
	creation := b.Volume.Creation()
	if creation == nil || creation.KMSKey == "" {
		return nil, nil
	}
	grant, err := b.Keys.Grant(ctx, creation.KMSKey, service)
	if err != nil {
		return nil, err
	}
	return []pulumi.CustomResource{grant}, nil
}

package storage

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/infra/iam"
	"persia/kube"
)

// backend describes a source to Kubernetes, Google Cloud and Pulumi.
type backend struct {
	// spec is where the data is, for the kubelet.
	spec corev1.PersistentVolumeSource
	// affinity is which nodes reach the volume, or nil for all.
	affinity *corev1.VolumeNodeAffinity

	// name is the logical name of the created storage, and the name of the storage itself, so that
	// a volume can be renamed. No volume can have such a name.
	name string
	// find asks Google Cloud for the storage. It is nil if no question is needed.
	find func(ctx *pulumi.Context, cloud Cloud) (present, error)
	// register registers the created storage, or is nil.
	register func(ctx *pulumi.Context, b backing) (registered, error)
	// service encrypts created storage.
	service iam.Service
}

// backendOf chooses by the kind of source. This is the only place that does.
func backendOf(source config.VolumeSource) backend {
	var spec corev1.PersistentVolumeSource
	switch s := source.(type) {
	case *config.Filestore:
		return filestoreShare(s)
	case *config.GCSFuse:
		return bucket(s)
	case *config.PersistentDisk:
		return disk(s)
	case *config.HostPath:
		// Of the node that a pod happens to run on: it is one volume only for a stack of one node.
		spec.HostPath = &corev1.HostPathVolumeSource{Path: s.Path, Type: new(corev1.HostPathDirectoryOrCreate)}
	case *config.NFS:
		spec.NFS = &corev1.NFSVolumeSource{Server: s.Server, Path: s.Path}
	case *config.ISCSI:
		spec.ISCSI = &corev1.ISCSIPersistentVolumeSource{TargetPortal: s.TargetPortal, IQN: s.IQN, Lun: int32(s.LUN), FSType: s.FSType}
	case *config.CSI:
		spec.CSI = &corev1.CSIPersistentVolumeSource{
			Driver:           s.Driver,
			VolumeHandle:     s.VolumeHandle,
			FSType:           s.FSType,
			VolumeAttributes: s.Attributes,
		}
	default:
		panic("no source") // refused by config
	}
	return backend{spec: spec}
}

// backing has everything that registers the storage of a volume.
type backing struct {
	Args
	// name is the logical name of the storage.
	name string
	// child are the options of everything that belongs to the volume.
	child pulumi.ResourceOption
	// grants let Google's service use the key of the storage, if it has one.
	grants []pulumi.CustomResource
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
	storage := backing{Args: args, name: backend.name, child: child}
	var err error
	if creation := args.Volume.Creation(); creation != nil {
		storage.grants, err = args.Keys.Grant(r.Context, creation.KMSKey, backend.service)
		r.Fail(err)
	}
	if err != nil {
		return registered{}
	}
	made, err := backend.register(r.Context, storage)
	r.Fail(err)
	return made
}

// outliving returns the options of storage that outlives the stack and the volume, unless the stack file names it for
// deletion. The next update takes it over. Pulumi ignores the import of a resource that it knows.
func (b backing) outliving() pulumi.ResourceOption {
	opts := []pulumi.ResourceOption{b.child, kube.After(b.grants), pulumi.RetainOnDelete(!b.Volume.DeletesData())}
	if b.Found.ID != "" {
		opts = append(opts, pulumi.Import(pulumi.ID(b.Found.ID)))
	}
	return pulumi.Composite(opts...)
}

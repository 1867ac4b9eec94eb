package storage

import (
	"path"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
	"persia/infra/compute"
	"persia/infra/iam"
)

// disk returns a disk of Compute Engine, mounted by its CSI driver.
func disk(s *config.PersistentDisk) backend {
	b := backend{
		name: path.Base(path.Dir(path.Dir(s.Handle()))) + "/" + s.Disk,
		spec: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver:       gcp.DriverPersistentDisk,
			VolumeHandle: s.Handle(),
			FSType:       s.FSType,
		}},
		affinity: onNodes(gcp.LabelZone, s.Zones...),
		find:     func(ctx *pulumi.Context, cloud Cloud) (present, error) { return findDisk(ctx, cloud, s) },
	}
	if s.Create != nil {
		b.register = func(ctx *pulumi.Context, b backing) (registered, error) { return registerDisk(ctx, b, s) }
	}
	return b
}

// registerDisk registers a disk of one zone, or of two.
func registerDisk(ctx *pulumi.Context, b backing, s *config.PersistentDisk) (registered, error) {
	grants, err := b.grantKey(ctx, iam.ComputeEngine)
	if err != nil {
		return registered{}, err
	}
	register := newZonalDisk
	if s.Regional() {
		register = newRegionalDisk
	}
	disk, err := register(ctx, b, s, b.outliving(grants))
	return registered{resources: []pulumi.CustomResource{disk}}, err
}

func newZonalDisk(ctx *pulumi.Context, b backing, s *config.PersistentDisk, opts pulumi.ResourceOption) (pulumi.CustomResource, error) {
	return compute.NewDisk(ctx, b.name, s.Zones[0], diskArgs(ctx, b, s), opts)
}

func newRegionalDisk(ctx *pulumi.Context, b backing, s *config.PersistentDisk, opts pulumi.ResourceOption) (pulumi.CustomResource, error) {
	return compute.NewRegionDisk(ctx, b.name, s.Region(), s.Zones, diskArgs(ctx, b, s), opts)
}

func diskArgs(ctx *pulumi.Context, b backing, s *config.PersistentDisk) *compute.DiskArgs {
	args := &compute.DiskArgs{
		Project: pulumi.String(b.Project),
		Name:    pulumi.String(s.Disk),
		Type:    pulumi.String(s.Create.Type),
		Size:    pulumi.Int(int(b.Volume.SizeGiB())),
		Labels:  b.labels(ctx),
	}
	if s.Create.KMSKey != "" {
		args.KMSKey = pulumi.String(s.Create.KMSKey)
	}
	return args
}

func findDisk(ctx *pulumi.Context, cloud Cloud, s *config.PersistentDisk) (present, error) {
	disk, err := lookupDisk(ctx, s, pulumi.Provider(cloud.Provider))
	if err != nil {
		return present{}, unlessAbsent(err, s.Disk)
	}
	return presentDisk(s, int64(disk.Size), disk.EffectiveLabels, disk.Type, disk.KMSKey()), nil
}

func lookupDisk(ctx *pulumi.Context, s *config.PersistentDisk, provider pulumi.InvokeOption) (compute.DiskResult, error) {
	if s.Regional() {
		return compute.LookupRegionDisk(ctx, s.Project, s.Region(), s.Disk, provider)
	}
	return compute.LookupDisk(ctx, s.Project, s.Zones[0], s.Disk, provider)
}

func presentDisk(s *config.PersistentDisk, size int64, labels map[string]string, diskType, key string) present {
	found := present{Found: Found{ID: s.Handle()}, labels: labels, sizeGiB: size}
	if s.Create != nil {
		// Compute Engine gives the type as a URL, and the key with its version.
		key, _, _ = strings.Cut(key, "/cryptoKeyVersions/")
		found.fixed = []fixed{
			{"create.type", s.Create.Type, path.Base(diskType)},
			{"create.kmsKey", s.Create.KMSKey, key},
		}
	}
	return found
}

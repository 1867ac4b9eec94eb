package storage

import (
	"path"
	"strings"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/compute"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
	"persia/kube"
)

// persistentDisk is a disk of Compute Engine, mounted by its CSI driver.
func persistentDisk(source config.PersistentDisk) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{
			Driver:       gcp.DriverPersistentDisk,
			VolumeHandle: source.Handle(),
			FSType:       source.FSType,
		},
	}
}

// newDisk registers a disk of one zone, or of two.
func newDisk(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) (backing, error) {
	grants, err := grantKey(ctx, name, args, args.Volume.PersistentDisk.Create.KMSKey, serviceAgent(ctx, args, "compute-system"), child)
	if err != nil {
		return backing{}, err
	}
	register := newZonalDisk
	if args.Volume.PersistentDisk.Regional() {
		register = newRegionalDisk
	}
	disk, err := register(ctx, name, args, outliving(args, child), kube.After(grants))
	return backing{resources: []pulumi.CustomResource{disk}}, err
}

func newZonalDisk(ctx *pulumi.Context, name string, args Args, opts ...pulumi.ResourceOption) (pulumi.CustomResource, error) {
	source := args.Volume.PersistentDisk
	disk := &compute.DiskArgs{
		Project: pulumi.String(args.Project),
		Zone:    pulumi.String(source.Zones[0]),
		Name:    pulumi.String(source.Disk),
		Type:    pulumi.String(source.Create.Type),
		Size:    pulumi.Int(int(args.Volume.SizeGiB())),
		Labels:  ownerLabels(ctx),
	}
	if source.Create.KMSKey != "" {
		disk.DiskEncryptionKey = compute.DiskDiskEncryptionKeyArgs{KmsKeySelfLink: pulumi.String(source.Create.KMSKey)}
	}
	return compute.NewDisk(ctx, name, disk, opts...)
}

func newRegionalDisk(ctx *pulumi.Context, name string, args Args, opts ...pulumi.ResourceOption) (pulumi.CustomResource, error) {
	source := args.Volume.PersistentDisk
	disk := &compute.RegionDiskArgs{
		Project:      pulumi.String(args.Project),
		Region:       pulumi.String(source.Region()),
		ReplicaZones: pulumi.ToStringArray(source.Zones),
		Name:         pulumi.String(source.Disk),
		Type:         pulumi.String(source.Create.Type),
		Size:         pulumi.Int(int(args.Volume.SizeGiB())),
		Labels:       ownerLabels(ctx),
	}
	if source.Create.KMSKey != "" {
		disk.DiskEncryptionKey = compute.RegionDiskDiskEncryptionKeyArgs{KmsKeyName: pulumi.String(source.Create.KMSKey)}
	}
	return compute.NewRegionDisk(ctx, name, disk, opts...)
}

func findDisk(ctx *pulumi.Context, source config.PersistentDisk) (present, error) {
	if source.Regional() {
		return findRegionalDisk(ctx, source)
	}
	disk, err := compute.LookupDisk(ctx, &compute.LookupDiskArgs{
		Project: &source.Project, Zone: &source.Zones[0], Name: source.Disk,
	})
	if err != nil {
		return present{}, unlessAbsent(err, source.Disk)
	}
	key := ""
	if len(disk.DiskEncryptionKeys) > 0 {
		key = disk.DiskEncryptionKeys[0].KmsKeySelfLink
	}
	return presentDisk(source, int64(disk.Size), disk.EffectiveLabels, disk.Type, key), nil
}

func findRegionalDisk(ctx *pulumi.Context, source config.PersistentDisk) (present, error) {
	region := source.Region()
	disk, err := compute.LookupRegionDisk(ctx, &compute.LookupRegionDiskArgs{
		Project: &source.Project, Region: &region, Name: source.Disk,
	})
	if err != nil {
		return present{}, unlessAbsent(err, source.Disk)
	}
	key := ""
	if len(disk.DiskEncryptionKeys) > 0 {
		key = disk.DiskEncryptionKeys[0].KmsKeyName
	}
	return presentDisk(source, int64(disk.Size), disk.EffectiveLabels, disk.Type, key), nil
}

func presentDisk(source config.PersistentDisk, size int64, labels map[string]string, diskType, key string) present {
	found := present{Found: Found{ID: source.Handle()}, labels: labels, sizeGiB: size}
	if source.Create != nil {
		// Compute Engine gives the type as a URL, and the key with its version.
		key, _, _ = strings.Cut(key, "/cryptoKeyVersions/")
		found.fixed = []fixed{
			{"create.type", source.Create.Type, path.Base(diskType)},
			{"create.kmsKey", source.Create.KMSKey, key},
		}
	}
	return found
}

package storage

import (
	"errors"
	"path"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/filestore"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
	"persia/kube"
)

// filestoreShare is a share of an instance, mounted by the CSI driver of Filestore.
// The address of an instance that is created comes later.
func filestoreShare(source config.Filestore, found Found) corev1.PersistentVolumeSource {
	attributes := map[string]string{"volume": source.Share}
	switch {
	case source.IP != "":
		attributes["ip"] = source.IP
	case source.Create == nil:
		attributes["ip"] = found.ip
	}
	return corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{
			Driver:           gcp.DriverFilestore,
			VolumeHandle:     source.Handle(),
			VolumeAttributes: attributes,
		},
	}
}

// newFilestore registers an instance in the cluster's network.
func newFilestore(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) (backing, error) {
	source := args.Volume.Filestore
	grants, err := grantKey(ctx, name, args, source.Create.KMSKey, serviceAgent(ctx, args, "cloud-filer"), child)
	if err != nil {
		return backing{}, err
	}
	instanceArgs := &filestore.InstanceArgs{
		Project:  pulumi.String(args.Project),
		Location: pulumi.String(source.Location),
		Name:     pulumi.String(source.Instance),
		Tier:     pulumi.String(source.Create.Tier),
		FileShares: filestore.InstanceFileSharesArgs{
			Name:       pulumi.String(source.Share),
			CapacityGb: pulumi.Int(int(args.Volume.SizeGiB())),
		},
		Networks: filestore.InstanceNetworkArray{filestore.InstanceNetworkArgs{
			Network: pulumi.String(args.Network),
			Modes:   pulumi.ToStringArray([]string{"MODE_IPV4"}),
		}},
		Labels: ownerLabels(ctx),
	}
	if source.Create.KMSKey != "" {
		instanceArgs.KmsKeyName = pulumi.String(source.Create.KMSKey)
	}
	instance, err := filestore.NewInstance(ctx, name, instanceArgs, outliving(args, child), kube.After(grants))
	if err != nil {
		return backing{}, err
	}
	return backing{
		resources: []pulumi.CustomResource{instance},
		later:     kube.Later{"spec.csi.volumeAttributes.ip": address(instance)},
	}, nil
}

// address is the only address of an instance.
func address(instance *filestore.Instance) pulumi.StringOutput {
	return instance.Networks.ApplyT(func(networks []filestore.InstanceNetwork) (string, error) {
		if len(networks) == 0 || len(networks[0].IpAddresses) == 0 {
			return "", errors.New("the Filestore instance has no address")
		}
		return networks[0].IpAddresses[0], nil
	}).(pulumi.StringOutput)
}

func findFilestore(ctx *pulumi.Context, project, network string, source config.Filestore) (present, error) {
	instance, err := filestore.LookupInstance(ctx, &filestore.LookupInstanceArgs{
		Project: &project, Location: &source.Location, Name: source.Instance,
	})
	if err != nil {
		return present{}, unlessAbsent(err, source.Instance)
	}
	found := present{
		Found:  Found{ID: "projects/" + project + "/locations/" + source.Location + "/instances/" + source.Instance},
		labels: instance.EffectiveLabels,
	}
	if len(instance.FileShares) > 0 {
		found.sizeGiB = int64(instance.FileShares[0].CapacityGb)
		found.fixed = append(found.fixed, fixed{"share", source.Share, instance.FileShares[0].Name})
	}
	if len(instance.Networks) > 0 {
		found.Network = path.Base(instance.Networks[0].Network)
		if len(instance.Networks[0].IpAddresses) > 0 {
			found.ip = instance.Networks[0].IpAddresses[0]
		}
	}
	if create := source.Create; create != nil {
		found.fixed = append(found.fixed,
			fixed{"create.tier", create.Tier, instance.Tier},
			fixed{"create.kmsKey", create.KMSKey, instance.KmsKeyName},
			fixed{"instance", "network " + path.Base(network), "network " + found.Network})
	}
	return found, nil
}

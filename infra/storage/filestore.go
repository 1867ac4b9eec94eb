package storage

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/filestore"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
	"persia/infra/compute"
	"persia/infra/iam"
	"persia/kube"
)

// filestoreShare returns a share of an instance, mounted by the CSI driver of Filestore. Its
// address comes from the stack file, or from Filestore.
func filestoreShare(s *config.Filestore) backend {
	attributes := map[string]string{"volume": s.Share}
	if s.IP != "" {
		attributes["ip"] = s.IP
	}
	b := backend{
		service: iam.Filestore,
		name:    s.Location + "/" + s.Instance,
		spec: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver:           gcp.DriverFilestore,
			VolumeHandle:     s.Handle(),
			VolumeAttributes: attributes,
		}},
		find: func(ctx *pulumi.Context, cloud Cloud) (present, error) { return findFilestore(ctx, cloud, s) },
		register: func(ctx *pulumi.Context, b backing) (registered, error) {
			if s.IP != "" {
				return registered{}, nil
			}
			return registered{later: kube.Later{ipAttribute: pulumi.String(b.Found.ip)}}, nil
		},
	}
	if s.Create != nil {
		b.register = func(ctx *pulumi.Context, b backing) (registered, error) { return registerFilestore(ctx, b, s) }
	}
	return b
}

const ipAttribute = "spec.csi.volumeAttributes.ip"

// registerFilestore registers an instance in the cluster's network.
func registerFilestore(ctx *pulumi.Context, b backing, s *config.Filestore) (registered, error) {
	args := &filestore.InstanceArgs{
		Project:  pulumi.String(b.Project),
		Location: pulumi.String(s.Location),
		Name:     pulumi.String(s.Instance),
		Tier:     pulumi.String(s.Create.Tier),
		FileShares: filestore.InstanceFileSharesArgs{
			Name:       pulumi.String(s.Share),
			CapacityGb: pulumi.Int(int(b.Volume.SizeGiB())),
		},
		Networks: filestore.InstanceNetworkArray{filestore.InstanceNetworkArgs{
			Network: pulumi.String(b.Network),
			Modes:   pulumi.ToStringArray([]string{"MODE_IPV4"}),
		}},
		Labels: b.labels(),
	}
	if s.Create.KMSKey != "" {
		args.KmsKeyName = pulumi.String(s.Create.KMSKey)
	}
	instance, err := filestore.NewInstance(ctx, b.name, args, b.outliving())
	if err != nil {
		return registered{}, err
	}
	return registered{
		resources: []pulumi.CustomResource{instance},
		later:     kube.Later{ipAttribute: address(instance)},
	}, nil
}

// address returns the only address of an instance.
func address(instance *filestore.Instance) pulumi.StringOutput {
	return instance.Networks.ApplyT(func(networks []filestore.InstanceNetwork) (string, error) {
		if len(networks) == 0 || len(networks[0].IpAddresses) == 0 {
			return "", errors.New("the Filestore instance has no address")
		}
		return networks[0].IpAddresses[0], nil
	}).(pulumi.StringOutput)
}

func findFilestore(ctx *pulumi.Context, cloud Cloud, s *config.Filestore) (present, error) {
	instance, err := filestore.LookupInstance(ctx, &filestore.LookupInstanceArgs{
		Project: &cloud.Project, Location: &s.Location, Name: s.Instance,
	}, pulumi.Provider(cloud.Provider))
	if compute.IsAbsent(err, s.Instance) {
		return present{}, nil
	} else if err != nil {
		return present{}, err
	}
	found := present{
		Found:  Found{ID: "projects/" + cloud.Project + "/locations/" + s.Location + "/instances/" + s.Instance},
		labels: instance.EffectiveLabels,
	}
	if len(instance.FileShares) > 0 {
		found.sizeGiB = int64(instance.FileShares[0].CapacityGb)
		_, found.mostGiB = gcp.FilestoreSizes(instance.Tier, found.sizeGiB)
		found.fixed = append(found.fixed, fixed{"share", s.Share, instance.FileShares[0].Name})
	}
	network := ""
	if len(instance.Networks) > 0 {
		network = path.Base(instance.Networks[0].Network)
		addresses := instance.Networks[0].IpAddresses
		if len(addresses) > 0 {
			found.ip = addresses[0]
		}
		if s.IP != "" && !slices.Contains(addresses, s.IP) {
			found.fixed = append(found.fixed, fixed{"ip", s.IP, strings.Join(addresses, ", ")})
		}
	}
	if create := s.Create; create != nil {
		found.fixed = append(found.fixed,
			fixed{"create.tier", create.Tier, instance.Tier},
			fixed{"create.kmsKey", create.KMSKey, instance.KmsKeyName},
			fixed{"instance", "network " + path.Base(cloud.Network), "network " + network})
	}
	return found, nil
}

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
		service: iam.ComputeEngine,
		name:    path.Base(path.Dir(path.Dir(s.Handle()))) + "/" + s.Disk,
		spec: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver:       gcp.DriverPersistentDisk,
			VolumeHandle: s.Handle(),
			FSType:       s.FSType,
		}},
		affinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: gcp.LabelZone, Operator: corev1.NodeSelectorOpIn, Values: s.Zones}},
		}}}},
		find: func(ctx *pulumi.Context, cloud Cloud) (present, error) { return findDisk(ctx, cloud, s) },
	}
	if s.Create != nil {
		b.register = func(ctx *pulumi.Context, b backing) (registered, error) { return registerDisk(ctx, b, s) }
	}
	return b
}

// registerDisk registers a disk of one zone, or of two.
func registerDisk(ctx *pulumi.Context, b backing, s *config.PersistentDisk) (registered, error) {
	kind, keyField := "disk", "kmsKeySelfLink"
	inputs := pulumi.Map{
		"project": pulumi.String(b.Project),
		"name":    pulumi.String(s.Disk),
		"type":    pulumi.String(s.Create.Type),
		"size":    pulumi.Int(int(b.Volume.SizeGiB())),
		"labels":  b.labels(),
	}
	if s.Regional() {
		kind, keyField = "regionDisk", "kmsKeyName"
		inputs["region"], inputs["replicaZones"] = pulumi.String(s.Region()), pulumi.ToStringArray(s.Zones)
	} else {
		inputs["zone"] = pulumi.String(s.Zones[0])
	}
	if s.Create.KMSKey != "" {
		inputs["diskEncryptionKey"] = pulumi.Map{keyField: pulumi.String(s.Create.KMSKey)}
	}
	// The provider returns these as secrets because its default labels may be secret.
	secret := pulumi.AdditionalSecretOutputs([]string{"effectiveLabels", "pulumiLabels"})
	disk, err := compute.Register(ctx, kind, b.name, inputs, b.outliving(), secret)
	return registered{resources: []pulumi.CustomResource{disk}}, err
}

// diskFound is a disk that exists. Its size is in GB, and its type is a URL. A zonal disk has the link of
// its key, and a regional disk the name.
type diskFound struct {
	Size   int64             `pulumi:"size"`
	Labels map[string]string `pulumi:"effectiveLabels"`
	Type   string            `pulumi:"type"`
	Keys   []struct {
		SelfLink string `pulumi:"kmsKeySelfLink"`
		Name     string `pulumi:"kmsKeyName"`
	} `pulumi:"diskEncryptionKeys"`
}

func findDisk(ctx *pulumi.Context, cloud Cloud, s *config.PersistentDisk) (present, error) {
	kind, args := "disk", map[string]any{"project": s.Project, "name": s.Disk}
	if s.Regional() {
		kind, args["region"] = "regionDisk", s.Region()
	} else {
		args["zone"] = s.Zones[0]
	}
	var disk diskFound
	exists, err := compute.LookUp(ctx, kind, args, &disk, cloud.Provider)
	if err != nil || !exists {
		return present{}, err
	}
	found := present{Found: Found{ID: s.Handle()}, labels: disk.Labels, sizeGiB: disk.Size}
	if s.Create != nil {
		key := ""
		if len(disk.Keys) > 0 {
			key, _, _ = strings.Cut(disk.Keys[0].SelfLink+disk.Keys[0].Name, "/cryptoKeyVersions/")
		}
		found.fixed = []fixed{
			{"create.type", s.Create.Type, path.Base(disk.Type)},
			{"create.kmsKey", s.Create.KMSKey, key},
		}
	}
	return found, nil
}

package compute

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

// Disk is a persistent disk, of one zone or of two.
type Disk struct{ pulumi.CustomResourceState }

// secretLabels marks the outputs of a disk that the provider returns as secrets because its default
// labels may be secret.
func secretLabels(opts []pulumi.ResourceOption) []pulumi.ResourceOption {
	return append(opts, pulumi.AdditionalSecretOutputs([]string{"effectiveLabels", "pulumiLabels"}))
}

// DiskArgs are the inputs of a disk. Size is in GB. KMSKey is the name of a key
// of Cloud KMS, or nil.
type DiskArgs struct {
	Project, Name, Type pulumi.StringInput
	Size                pulumi.IntInput
	Labels              pulumi.StringMapInput
	KMSKey              pulumi.StringInput
}

// NewDisk registers a disk in a zone.
func NewDisk(ctx *pulumi.Context, name, zone string, args *DiskArgs, opts ...pulumi.ResourceOption) (*Disk, error) {
	inputs := args.inputs("kmsKeySelfLink")
	inputs["zone"] = pulumi.String(zone)
	disk := &Disk{}
	return disk, register(ctx, "gcp:compute/disk:Disk", name, inputs, disk, secretLabels(opts))
}

// NewRegionDisk registers a disk in two zones of a region.
func NewRegionDisk(ctx *pulumi.Context, name, region string, zones []string, args *DiskArgs, opts ...pulumi.ResourceOption) (*Disk, error) {
	inputs := args.inputs("kmsKeyName")
	inputs["region"], inputs["replicaZones"] = pulumi.String(region), pulumi.ToStringArray(zones)
	disk := &Disk{}
	return disk, register(ctx, "gcp:compute/regionDisk:RegionDisk", name, inputs, disk, secretLabels(opts))
}

// inputs returns the inputs of a disk. Zonal and regional disks name the field of the key
// differently.
func (a DiskArgs) inputs(keyField string) pulumi.Map {
	inputs := pulumi.Map{
		"project": a.Project,
		"name":    a.Name,
		"type":    a.Type,
		"size":    a.Size,
		"labels":  a.Labels,
	}
	if a.KMSKey != nil {
		inputs["diskEncryptionKey"] = pulumi.Map{keyField: a.KMSKey}
	}
	return inputs
}

// DiskResult is a disk that exists.
type DiskResult struct {
	// Size is in GB.
	Size            int               `pulumi:"size"`
	EffectiveLabels map[string]string `pulumi:"effectiveLabels"`
	// Type is a URL.
	Type               string              `pulumi:"type"`
	DiskEncryptionKeys []diskEncryptionKey `pulumi:"diskEncryptionKeys"`
}

type diskEncryptionKey struct {
	SelfLink string `pulumi:"kmsKeySelfLink"`
	Name     string `pulumi:"kmsKeyName"`
}

// KMSKey returns the version of the Cloud KMS key that encrypts the disk, or "".
func (d DiskResult) KMSKey() string {
	if len(d.DiskEncryptionKeys) == 0 {
		return ""
	}
	return d.DiskEncryptionKeys[0].SelfLink + d.DiskEncryptionKeys[0].Name
}

// LookupDisk reads a disk in a zone.
func LookupDisk(ctx *pulumi.Context, project, zone, name string, opts ...pulumi.InvokeOption) (DiskResult, error) {
	return lookup(ctx, "gcp:compute/getDisk:getDisk", map[string]any{"project": project, "zone": zone, "name": name}, opts)
}

// LookupRegionDisk reads a disk in two zones of a region.
func LookupRegionDisk(ctx *pulumi.Context, project, region, name string, opts ...pulumi.InvokeOption) (DiskResult, error) {
	return lookup(ctx, "gcp:compute/getRegionDisk:getRegionDisk", map[string]any{"project": project, "region": region, "name": name}, opts)
}

func lookup(ctx *pulumi.Context, function string, args map[string]any, opts []pulumi.InvokeOption) (disk DiskResult, err error) {
	err = ctx.Invoke(function, args, &disk, append(opts, pulumi.Version(version))...)
	return disk, err
}

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// PersistentDisk is a Compute Engine disk. One node at a time can mount it.
type PersistentDisk struct {
	// Disk is the name of the disk.
	Disk string `json:"disk" form:"name"`
	// Zones are the zone of the disk, or both of a regional one. Default with create: the cluster's first.
	Zones []string `json:"zones,omitempty"`
	// Project is the disk's project. Default: the stack's. Required on an existing cluster.
	Project string `json:"project,omitempty"`
	// FSType is the file system.
	FSType string      `json:"fsType,omitempty" default:"ext4" enum:"btrfs,ext2,ext3,ext4,xfs"`
	Create *CreateDisk `json:"create,omitempty"`
}

// CreateDisk creates the disk, with the size of the volume.
type CreateDisk struct {
	// Type is the type of the disk, which cannot change later. A regional disk cannot be hyperdisk-balanced.
	Type string `json:"type,omitempty" default:"pd-balanced" enum:"pd-standard,pd-balanced,pd-ssd,hyperdisk-balanced"`

	Creation `json:",inline"`
}

// Handle returns the ID by which the driver and Google Cloud know the disk.
func (d *PersistentDisk) Handle() string {
	where := "zones/" + strings.Join(d.Zones, "")
	if d.Regional() {
		where = "regions/" + d.Region()
	}
	return fmt.Sprintf("projects/%s/%s/disks/%s", d.Project, where, d.Disk)
}

// Regional reports whether the disk has replicas in two zones.
func (d *PersistentDisk) Regional() bool { return len(d.Zones) > 1 }

// Region returns the region of the disk's zones.
func (d *PersistentDisk) Region() string {
	if len(d.Zones) == 0 {
		return ""
	}
	return gcp.RegionOf(d.Zones[0])
}

func (d *PersistentDisk) String() string { return d.Handle() }

func (d *PersistentDisk) resolve(site *Site) {
	d.Project = cmp.Or(d.Project, site.Project)
	if d.Create != nil && len(d.Zones) == 0 && len(site.Cluster.Zones) > 0 {
		d.Zones = site.Cluster.Zones[:1:1]
	}
}

func (d *PersistentDisk) check(p *input.Problems, path *field.Path, site *Site) {
	if d.Project == "" && site.existing() {
		p.Required(path.Child("project"), "write the Google Cloud project of the disk, because a stack on an existing cluster has none")
	}
	d.checkZones(p, path.Child("zones"), site)
	if create := path.Child("create"); d.Create != nil &&
		d.Create.check(p, create, site, d.Disk) && d.Project != site.Project {
		p.Invalid(create, d.Project, "the stack creates disks in its own project, %s; remove project", site.Project)
	}
}

func (d *PersistentDisk) checkZones(p *input.Problems, path *field.Path, site *Site) {
	switch {
	case len(d.Zones) == 0:
		p.Required(path, "write the zone of the disk, as `gcloud compute disks list` shows it")
	case len(d.Zones) > 2:
		p.Invalid(path, d.Zones, "must be one zone, or the two of a regional disk")
	case site.existing() && !input.IsRegion(d.Region()):
		p.Invalid(path.Index(0), d.Zones[0], "must be a zone, like us-central1-a")
	case site.existing():
		input.Zones(p, path, d.Region(), d.Zones)
	default:
		input.Zones(p, path, site.Cluster.Region, d.Zones)
	}
}

// checkUsers checks that the nodes of the pools are in the zones of the disk, and that their machines support it.
func (d *PersistentDisk) checkUsers(p *input.Problems, path *field.Path, users volumeUsers) {
	for _, pool := range users.Pools {
		machine, _ := gcp.Lookup(pool.MachineType)
		if disks := machine.BootDisks(); d.Create != nil && len(disks) > 0 && !slices.Contains(disks, d.Create.Type) {
			p.Invalid(path.Child("create", "type"), d.Create.Type, "is not supported by %s, the machine type of pool %s, "+
				"whose pods mount the volume; write %s", pool.MachineType, pool.Name, input.Or(disks))
		}
		far := slices.DeleteFunc(slices.Clone(pool.Zones), func(zone string) bool { return slices.Contains(d.Zones, zone) })
		switch {
		case len(far) == 0 || len(d.Zones) == 0:
		case !users.OnePod:
			p.Invalid(path.Child("zones"), d.Zones, "pool %s, whose roles mount the volume, also has nodes in %s, which cannot "+
				"reach the disk; give the pool only the zones of the disk, or use filestore or gcsFuse", pool.Name, far[0])
		case len(far) == len(pool.Zones):
			p.Invalid(path.Child("zones"), d.Zones, "pool %s, whose pods mount the volume, has nodes only in %s; "+
				"write a disk there, or choose another pool", pool.Name, input.And(far))
		}
	}
}

// Filestore is a share of a Filestore instance in the cluster's network.
type Filestore struct {
	// Instance is the name of the instance.
	Instance string `json:"instance" form:"name"`
	// Location is the zone of the instance, or its region in the tiers REGIONAL and ENTERPRISE. Default with create:
	// the cluster's first zone, or its region.
	Location string `json:"location,omitempty"`
	// Share is the name of the share. Default with create: checkpoints.
	Share string `json:"share,omitempty"`
	// IP is the address. By default the stack asks Filestore, but not on an existing cluster.
	IP     string           `json:"ip,omitempty" form:"address"`
	Create *CreateFilestore `json:"create,omitempty"`
}

// CreateFilestore creates the instance, with the size of the volume as its capacity.
type CreateFilestore struct {
	// Tier is the service tier, which cannot change later.
	Tier string `json:"tier,omitempty" default:"ZONAL" enum:"BASIC_HDD,BASIC_SSD,ZONAL,REGIONAL,ENTERPRISE"`

	Creation `json:",inline"`
}

// Handle returns the ID by which the driver knows the share.
func (f *Filestore) Handle() string {
	return fmt.Sprintf("modeInstance/%s/%s/%s", f.Location, f.Instance, f.Share)
}

func (f *Filestore) String() string {
	return fmt.Sprintf("Filestore instance %s in %s", f.Instance, f.Location)
}

func (f *Filestore) resolve(site *Site) {
	if f.Create == nil {
		return
	}
	f.Share = cmp.Or(f.Share, "checkpoints")
	switch {
	case f.Location != "":
	case f.Create.Tier == "REGIONAL" || f.Create.Tier == "ENTERPRISE":
		f.Location = site.Cluster.Region
	case len(site.Cluster.Zones) > 0:
		f.Location = site.Cluster.Zones[0]
	}
}

func (f *Filestore) check(p *input.Problems, path *field.Path, site *Site) {
	if f.Create != nil {
		if f.Create.check(p, path.Child("create"), site, f.Instance) && f.IP != "" {
			p.Forbidden(path.Child("ip"), "Filestore chooses the address of an instance that the stack creates; remove it")
		}
		return
	}
	input.Form(p, path.Child("location"), "location", f.Location)
	if f.Share == "" {
		p.Required(path.Child("share"), "write the name of the share, or create for an instance that the stack creates")
	}
	if f.IP == "" && site.existing() {
		p.Required(path.Child("ip"), "write its address: on an existing cluster, the program does not ask Google Cloud")
	}
}

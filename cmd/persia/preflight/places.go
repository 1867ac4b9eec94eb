package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"persia/config"
	"persia/config/input"
	"persia/gcp"
)

// The beginnings of the names of the checks of machines and storage.
const (
	machineName = "machine "
	bucketName  = "bucket "
	cacheName   = "image cache "
)

// machineNeed is a machine type, or a type of GPUs that are attached to machines, with the zones
// that must have it.
type machineNeed struct {
	name     string
	attached bool
	zones    []string
}

// types returns the group of gcloud's commands for it.
func (n machineNeed) types() string {
	if n.attached {
		return "accelerator-types"
	}
	return "machine-types"
}

// list is a command that lists the zones that have it.
func (n machineNeed) list(project string) string {
	if n.attached {
		return fmt.Sprintf("gcloud compute accelerator-types list --filter=name=%s --project=%s", n.name, project)
	}
	return fmt.Sprintf("gcloud compute machine-types list --filter=name=%s --project=%s", n.name, project)
}

// machineNeeds returns the machine types and attached GPUs of all pools whose zones are known.
func (p *preflight) machineNeeds() []machineNeed {
	var needs []machineNeed
	add := func(name string, attached bool, zones []string) {
		i := slices.IndexFunc(needs, func(n machineNeed) bool { return n.name == name })
		if i < 0 {
			i, needs = len(needs), append(needs, machineNeed{name: name, attached: attached})
		}
		for _, zone := range zones {
			if !slices.Contains(needs[i].zones, zone) {
				needs[i].zones = append(needs[i].zones, zone)
			}
		}
	}
	for _, pool := range p.stack.Pools() {
		if len(pool.Zones) == 0 {
			continue
		}
		add(pool.MachineType, false, pool.Zones)
		if m, known := gcp.Lookup(pool.MachineType); pool.GPU != nil && known && m.GPUs == 0 {
			add(pool.GPU.Type, true, pool.Zones)
		}
	}
	return needs
}

// machineChecks ask Compute Engine whether the zones have the machines and GPUs of the stack. No table
// of the program can know that, because Google adds machines to zones every month.
func (p *preflight) machineChecks(ctx context.Context) []Check {
	var checks []Check
	for _, need := range p.machineNeeds() {
		checks = append(checks, p.machineCheck(ctx, need))
	}
	return checks
}

func (p *preflight) machineCheck(ctx context.Context, need machineNeed) Check {
	name := machineName + need.name
	var lack []string
	for _, zone := range need.zones {
		var there struct{ Name string }
		switch err := p.ask(ctx, &there, "gcloud", "compute", need.types(), "describe", need.name, "--zone="+zone, "--project="+p.stack.Project, "--format=json"); {
		case notFound(err):
			lack = append(lack, zone)
		case err != nil:
			return unchecked(name, fmt.Sprintf("%v; needed in %s", err, input.And(need.zones)))
		}
	}
	if len(lack) > 0 {
		return missing(name, input.And(lack)+" has none",
			"write other zones or another machine type; this lists the zones that have it: "+need.list(p.stack.Project))
	}
	return ok(name, "in "+input.And(need.zones))
}

// buckets returns the buckets that must be there: what volumes mount and the stack does not create.
func (p *preflight) buckets() []string {
	var buckets []string
	add := func(bucket string) {
		// With the name _, the driver mounts all buckets.
		if bucket != "" && bucket != "_" && !slices.Contains(buckets, bucket) {
			buckets = append(buckets, bucket)
		}
	}
	for _, v := range p.stack.StoredVolumes() {
		if bucket, is := strings.CutPrefix(v.Identity(), "csi "+gcp.DriverGCSFuse+" "); is && v.Creation() == nil {
			add(bucket)
		}
	}
	for i := range p.stack.Jobs {
		for _, v := range p.stack.Jobs[i].Volumes {
			if v.CSI != nil && v.CSI.Driver == gcp.DriverGCSFuse {
				add(v.CSI.VolumeAttributes["bucketName"])
			}
		}
	}
	return buckets
}

// bucketChecks ask Cloud Storage where the buckets are.
func (p *preflight) bucketChecks(ctx context.Context) []Check {
	var checks []Check
	for _, bucket := range p.buckets() {
		checks = append(checks, p.bucketCheck(ctx, bucket))
	}
	return checks
}

func (p *preflight) bucketCheck(ctx context.Context, bucket string) Check {
	name, region := bucketName+bucket, p.stack.Cluster.Region
	var there struct{ Location string }
	err := p.ask(ctx, &there, "gcloud", "storage", "buckets", "describe", "gs://"+bucket, "--format=json")
	switch location := strings.ToUpper(there.Location); {
	case notFound(err):
		return missing(name, "it does not exist, so no pod that mounts it starts",
			fmt.Sprintf("correct the name, write create: {} next to it, or run gcloud storage buckets create gs://%s --location=%s --project=%s", bucket, region, p.stack.Project))
	case err != nil:
		return unchecked(name, err.Error())
	case slices.Contains(gcp.BucketLocations(), location) && !gcp.LocationHolds(location, region):
		return warning(name, fmt.Sprintf("%s is far from the cluster in %s, so checkpoints are slow and their traffic is billed", location, region),
			"use a bucket in "+region)
	default:
		return ok(name, "in "+location)
	}
}

// cacheChecks look for the repositories of image caches that the stack does not create. The
// stack file says where they are, and the program compares that with the region.
func (p *preflight) cacheChecks(ctx context.Context) []Check {
	var checks []Check
	for _, cache := range p.stack.Images.Caches {
		if !cache.Created() {
			checks = append(checks, p.cacheCheck(ctx, cache))
		}
	}
	return checks
}

func (p *preflight) cacheCheck(ctx context.Context, cache config.Cache) Check {
	name := cacheName + cache.Repository
	create := fmt.Sprintf("gcloud artifacts repositories create %s --repository-format=docker --mode=remote-repository --remote-docker-repo=https://%s --location=%s --project=%s",
		cache.Name(), cache.Registry, cache.Location(), cache.Project())
	var there struct{ Format, Mode string }
	err := p.ask(ctx, &there, "gcloud", "artifacts", "repositories", "describe", cache.Name(), "--location="+cache.Location(), "--project="+cache.Project(), "--format=json")
	switch {
	case notFound(err):
		return missing(name, "it does not exist, so no node can pull an image of "+cache.Registry, create)
	case err != nil:
		return unchecked(name, err.Error())
	case there.Format != "DOCKER" || there.Mode == "STANDARD_REPOSITORY":
		return missing(name, fmt.Sprintf("it is a %s of the format %s, and does not fetch images of %s", there.Mode, there.Format, cache.Registry),
			"write another repository, or create one: "+strings.Replace(create, cache.Name(), "NAME", 1))
	default:
		return ok(name, "for "+cache.Registry)
	}
}

// uncheckedPlaces returns the unchecked checks of this file for a project that did not answer.
func (p *preflight) uncheckedPlaces(why string) []Check {
	var checks []Check
	for _, need := range p.machineNeeds() {
		checks = append(checks, unchecked(machineName+need.name, fmt.Sprintf("%s; needed in %s", why, input.And(need.zones))))
	}
	for _, bucket := range p.buckets() {
		checks = append(checks, unchecked(bucketName+bucket, why))
	}
	for _, cache := range p.stack.Images.Caches {
		if !cache.Created() {
			checks = append(checks, unchecked(cacheName+cache.Repository, why))
		}
	}
	return checks
}

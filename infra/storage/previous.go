package storage

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/config"
	"persia/config/input"
)

// Record is storage that the state of the stack has.
type Record struct {
	source config.VolumeSource
	// project is its Google Cloud project.
	project string
	// deletes is true if Pulumi deletes the storage when the program no longer registers it.
	deletes bool
}

// Previous returns the storage in the state of the stack. Its outputs do not tell: a failed update changes
// the state, and leaves the outputs as they were.
func Previous(resources map[resource.URN]map[string]any) []Record {
	var records []Record
	for _, urn := range slices.Sorted(maps.Keys(resources)) {
		if held, ok := inState(urn, resources[urn]); ok {
			records = append(records, held)
		}
	}
	return records
}

// inState returns the record of a resource in the state of a stack, if it is storage.
func inState(urn resource.URN, outputs map[string]any) (Record, bool) {
	text := func(name string) string { value, _ := outputs[name].(string); return value }
	r := Record{project: text("project")}
	switch urn.Type() {
	case "gcp:storage/bucket:Bucket":
		r.source = &config.GCSFuse{Bucket: text("name"), Create: &config.CreateBucket{}}
	case "gcp:filestore/instance:Instance":
		name, _, _ := unstructured.NestedString(outputs, "fileShares", "name")
		r.source = &config.Filestore{Instance: text("name"), Location: text("location"), Share: name, Create: &config.CreateFilestore{}}
	case "gcp:compute/disk:Disk", "gcp:compute/regionDisk:RegionDisk":
		zones, _ := outputs["replicaZones"].([]any)
		if len(zones) == 0 {
			zones = []any{text("zone")}
		}
		names := input.Words(zones, func(zone any) string { return path.Base(fmt.Sprint(zone)) })
		r.source = &config.PersistentDisk{Disk: text("name"), Project: r.project, Zones: names, Create: &config.CreateDisk{}}
	default:
		return Record{}, false
	}
	// The state does not tell a program what Pulumi retains. What was imported has no labels until
	// it is updated, and may be deleted.
	labels, _ := outputs["labels"].(map[string]any)
	forced, _ := outputs["forceDestroy"].(bool)
	r.deletes = forced || labels[ownerLabel] == nil || labels[deletionLabel] != nil
	return r, true
}

// Shared warns of existing storage that the stack has not had before. Another stack may train in it,
// for example the one whose stack file was copied.
func Shared(pairs map[string]Pair, volumes []config.StoredVolume) []string {
	var warnings []string
	for _, v := range volumes {
		had := slices.ContainsFunc(slices.Collect(maps.Values(pairs)), func(p Pair) bool { return p.volume && !p.elsewhere(v.Source()) })
		if had || v.Creates() || v.HostPath != nil {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s exists, and this stack has not used it before. "+
			"If another stack trains in it, for example the one that the stack file was copied from, "+
			"then a job of the same name and runId finds the other's run, and fails without touching it; "+
			"write other storage, another runId, or only-dir in mountOptions",
			v.Path, v.Source()))
	}
	return warnings
}

// Imported warns of storage that the update imports because the stack has created it, but the state does not have it.
func Imported(cloud Cloud, previous []Record, found map[string]Found, volumes []config.StoredVolume) []string {
	var warnings []string
	for _, v := range volumes {
		had := slices.ContainsFunc(previous, func(r Record) bool { return r.isOf(cloud, v) })
		if had || !v.Creates() || found[v.Name].ID == "" {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s exists with the label %s=%s of this stack, but its state does not have it, "+
			"so the update imports it, and the jobs go on from the checkpoints in it. "+
			"After `pulumi destroy` of this stack, that is right. "+
			"If a stack of this name still uses it from another state, as in another backend, "+
			"this stack would take over its runs and remove its checkpoints: write other storage, or end that stack first",
			v.Path, v.Source(), ownerLabel, cloud.Owner))
	}
	return warnings
}

// Deleted refuses an update with which Pulumi would delete data that the stack file no longer names. The state of a
// stack marks each resource that Pulumi deletes, for `pulumi destroy` and for updates alike: an update deletes such a
// resource as soon as the program no longer registers it. So Deleted refuses to drop storage that the state has for
// deletion, until the storage is kept or gone.
func Deleted(ctx *pulumi.Context, cloud Cloud, previous []Record, volumes []config.StoredVolume) error {
	for _, r := range previous {
		created := slices.ContainsFunc(volumes, func(v config.StoredVolume) bool { return v.Creates() && r.isOf(cloud, v) })
		if !r.deletes || created {
			continue
		}
		exists := true
		if !cloud.Existing {
			of := cloud
			of.Project = r.project
			there, err := backendOf(r.source).find(ctx, of)
			if err != nil {
				return fmt.Errorf("look for %s: %w", r.source, err)
			}
			exists = there.ID != ""
		}
		if exists {
			return fmt.Errorf("persia:storage: the state of the stack has %s in the project %s for deletion (deleteWithStack), "+
				"and no volume creates it any more: Pulumi would delete it now, with all data. "+
				"To keep the data, write the volume back with create, without deleteWithStack, "+
				"and run `pulumi up` before you remove it. To delete the data, delete %s yourself first", r.source, r.project, r.source)
		}
	}
	return nil
}

// isOf reports whether the storage is the one of a volume.
func (r Record) isOf(cloud Cloud, v config.StoredVolume) bool {
	source := v.Source()
	return r.project == cloud.Project && reflect.TypeOf(source) == reflect.TypeOf(r.source) &&
		backendOf(source).name == backendOf(r.source).name
}

package storage

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

// OutputName is the output of a stack that its next update reads: which storage each
// volume has, and which Filestore instances the stack has left in its network.
const OutputName = "storage"

// Record is the storage of a volume, as an output of the stack.
type Record struct {
	// Volume is the name of the volume. It is empty for storage that no volume has
	// any more.
	Volume string         `json:"volume,omitempty"`
	Source config.Sources `json:"source"`
}

// Records returns the records of volumes, and of storage that removed volumes left.
func Records(volumes []config.StoredVolume, left []Record) []Record {
	records := make([]Record, 0, len(volumes)+len(left))
	for _, v := range volumes {
		records = append(records, Record{Volume: v.Name, Source: v.Sources})
	}
	return append(records, left...)
}

// Output returns the output that the next update reads.
func Output(records []Record) (pulumi.Input, error) {
	text, err := json.Marshal(records)
	if err != nil {
		return nil, err
	}
	var plain any
	err = json.Unmarshal(text, &plain)
	return pulumi.ToOutput(plain), err
}

// Previous reads the records of storage that the last successful update wrote into the outputs of
// this stack.
func Previous(outputs map[string]any) ([]Record, error) {
	text, err := json.Marshal(outputs[OutputName])
	if err != nil {
		return nil, err
	}
	var records []Record
	if err := json.Unmarshal(text, &records); err != nil {
		return nil, fmt.Errorf("output %s of the last update: %w", OutputName, err)
	}
	return records, nil
}

// identity returns a text that identifies the storage of a record.
func (r Record) identity() string {
	if source := r.Source.Source(); source != nil {
		return source.Identity()
	}
	return ""
}

// Shared warns of existing storage that the stack has not had before. Another stack may train in it,
// for example the one whose stack file was copied.
func Shared(previous []Record, volumes []config.StoredVolume) []string {
	var warnings []string
	for _, v := range volumes {
		had := slices.ContainsFunc(previous, func(r Record) bool { return r.identity() == v.Identity() })
		if had || v.Creates() || v.HostPath != nil || v.Local != nil {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s exists, and this stack has not used it before. If another stack trains in it, for example the one that the stack file was copied from, then a job of the same name and runId finds the other's run, and fails without touching it; write other storage, another runId, or only-dir in mountOptions",
			v.Path, v.Source()))
	}
	return warnings
}

// Deleted refuses an update with which Pulumi would delete data that the stack file no longer
// names. The state of a stack marks each resource that Pulumi deletes, for `pulumi destroy` and
// for updates alike: an update deletes such a resource as soon as the program no longer registers
// it. So Deleted refuses to drop storage that the last update was told to delete with the stack,
// until the storage is kept or gone.
func Deleted(ctx *pulumi.Context, cloud Cloud, previous []Record, volumes []config.StoredVolume) error {
	for _, r := range previous {
		source := r.Source.Source()
		if source == nil || source.Creation() == nil || !source.Creation().DeletesData || createdBy(volumes, r) {
			continue
		}
		exists := true
		if !cloud.Existing {
			there, err := backendOf(source).find(ctx, cloud.Project, cloud.Network)
			if err != nil {
				return fmt.Errorf("look for %s: %w", source, err)
			}
			exists = there.ID != ""
		}
		if exists {
			return fmt.Errorf("persia:storage: the stack was told to delete %s with itself (deleteWithStack), and no volume creates it any more: Pulumi would delete it now, with all data. "+
				"To keep the data, write the volume back with create, without deleteWithStack, and run `pulumi up` before you remove it. To delete the data, delete %s yourself first", source, source)
		}
	}
	return nil
}

func createdBy(volumes []config.StoredVolume, r Record) bool {
	return slices.ContainsFunc(volumes, func(v config.StoredVolume) bool {
		return v.Creates() && v.Identity() == r.identity()
	})
}

// Left returns the Filestore instances that earlier updates have created, that no volume names any
// more, and that still exist. Google refuses to delete a network with an instance in it.
func Left(ctx *pulumi.Context, cloud Cloud, previous []Record, volumes []config.StoredVolume) ([]Record, error) {
	var left []Record
	for _, r := range previous {
		instance, ok := r.Source.Source().(*config.Filestore)
		if !ok || cloud.Existing || instance.Create == nil || createdBy(volumes, r) {
			continue
		}
		there, err := findFilestore(ctx, cloud.Project, cloud.Network, instance)
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", instance, err)
		}
		if there.ID != "" && there.Network == path.Base(cloud.Network) {
			left = append(left, Record{Source: r.Source})
		}
	}
	return left, nil
}

package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
)

// Found describes the storage of a volume that already exists in Google Cloud.
type Found struct {
	// ID is the ID with which Pulumi imports the storage, or "" if it does not exist.
	ID string

	// ip is the address of a Filestore instance.
	ip string
}

// present is existing storage, with the settings that a stack must match.
type present struct {
	Found
	labels  map[string]string
	sizeGiB int64
	// mostGiB is how far the storage can grow, or 0 if that is not known.
	mostGiB int64
	// fixed cannot be changed.
	fixed []fixed
}

// fixed is a setting of storage that cannot be changed.
type fixed struct{ field, wanted, is string }

// Cloud is where the storage of a stack is.
type Cloud struct {
	// Existing is true on an existing cluster. The stack then has no project, looks nothing up, and changes nothing
	// in Google Cloud, and the cluster's operators grant the pods what they need.
	Existing bool
	// Project is the Google Cloud project, and Network the identifier of the cluster's network.
	Project, Network string
	// Owner is the label of what the stack creates.
	Owner string
	// Provider answers for Google Cloud.
	Provider pulumi.ProviderResource
}

// Find looks up the storage of volumes by name, before the program registers anything. The stack takes over what an
// earlier life of it left. Find refuses storage that the stack must not take over, shrink or replace.
func Find(ctx *pulumi.Context, cloud Cloud, volumes []config.StoredVolume) (map[string]Found, error) {
	found, problems := map[string]Found{}, []error{}
	for _, stored := range volumes {
		find := backendOf(stored.Source()).find
		if cloud.Existing || find == nil {
			continue
		}
		there, err := find(ctx, cloud)
		if err != nil {
			return nil, fmt.Errorf("%s: look for %s: %w", stored.Path, stored.Source(), err)
		}
		problems = append(problems, check(stored.Path, &stored.Volume, there, cloud.Owner))
		found[stored.Name] = there.Found
	}
	if err := errors.Join(problems...); err != nil {
		return found, fmt.Errorf("volumes do not agree with what Google Cloud has:\n%w", err)
	}
	return found, nil
}

// check compares a volume with its storage.
func check(path *field.Path, volume *config.Volume, there present, owner string) error {
	source := path.Child(volume.Field())
	refuse := func(format string, args ...any) error {
		return field.Invalid(source, volume.Source().String(), fmt.Sprintf(format, args...))
	}
	switch of, labelled := there.labels[ownerLabel]; {
	case there.ID == "" && volume.Creates():
		return nil
	case there.ID == "":
		return refuse("does not exist; correct the name, or write create: {} to have the stack create it")
	case volume.Creates() && !labelled:
		return refuse("exists already, and no stack has created it; remove create to use it as it is, or choose another name")
	case volume.Creates() && of != owner:
		return refuse("exists already, and the stack %s has created it; remove create to use it as it is, "+
			"choose another name, or, if that stack is gone or had another name, hand it over by the label %s=%s", of, ownerLabel, owner)
	}
	var problems []error
	for _, f := range there.fixed {
		if !strings.EqualFold(f.wanted, f.is) {
			problems = append(problems, field.Invalid(source.Child(f.field), f.wanted,
				fmt.Sprintf("is %q at %s and cannot be changed; write that, or choose another name for a new one", f.is, volume.Source())))
		}
	}
	return errors.Join(append(problems, checkSize(path.Child("size"), volume, there))...)
}

// checkSize refuses to shrink storage of the stack, or to grow it where that is not possible, and claims that are
// larger than their storage.
func checkSize(path *field.Path, volume *config.Volume, there present) error {
	switch wanted, is := volume.SizeGiB(), there.sizeGiB; {
	case is == 0:
		return nil
	case volume.Creates() && wanted < is:
		return field.Invalid(path, volume.Size, fmt.Sprintf("%s has %dGi, and never shrinks; write %dGi or more", volume.Source(), is, is))
	case volume.Creates() && there.mostGiB > 0 && wanted > there.mostGiB:
		return field.Invalid(path, volume.Size, fmt.Sprintf("%s has %dGi, and grows to %dGi at most; write that or less. For more, "+
			"add a volume with another instance or a bucket, copy the data while no job runs, and mount that one",
			volume.Source(), is, there.mostGiB))
	case !volume.Creates() && wanted > is:
		return field.Invalid(path, volume.Size, fmt.Sprintf("%s has %dGi, "+
			"and nothing would provide what a larger claim promises; write %dGi or less", volume.Source(), is, is))
	}
	return nil
}

// ownerLabel is the label of Google Cloud that says which stack has made something.
const ownerLabel = "persia-stack"

// deletionLabel is the label of storage that Pulumi deletes with the stack. It is in the state, where
// the program finds it even after a failed update.
const deletionLabel = "persia-deleted-with-stack"

func (b backing) labels() pulumi.StringMap {
	labels := pulumi.StringMap{ownerLabel: pulumi.String(b.Owner)}
	if b.Volume.DeletesData() {
		labels[deletionLabel] = pulumi.String("true")
	}
	return labels
}

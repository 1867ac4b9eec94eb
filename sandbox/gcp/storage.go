package gcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

const (
	bucketType     = "gcp:storage/bucket:Bucket"
	instanceType   = "gcp:filestore/instance:Instance"
	diskType       = "gcp:compute/disk:Disk"
	regionDiskType = "gcp:compute/regionDisk:RegionDisk"

	instanceID   = "projects/${project}/locations/${location}/instances/${name}"
	diskID       = "projects/${project}/zones/${zone}/disks/${name}"
	regionDiskID = "projects/${project}/regions/${region}/disks/${name}"
)

// storage is what outlives stacks: buckets, Filestore instances and disks. Each has a
// file with its inputs, and the folder is there while there are any.
type storage struct{ dir string }

// kinds are those that have files, and the network, which outlives a stack as long
// as an instance stands in it.
func (s storage) kinds() map[tokens.Type]kind {
	const networkType = "gcp:compute/network:Network"
	kinds := map[tokens.Type]kind{
		bucketType: {
			id:        "${name}",
			replaceOn: []string{"location", "project", "customPlacementConfig", "enableObjectRetention"},
			outputs:   expandAll(map[string]string{"url": "gs://${name}", "selfLink": "https://www.googleapis.com/storage/v1/b/${name}"}),
		},
		instanceType: {
			id:        instanceID,
			replaceOn: []string{"tier", "fileShares.name", "fileShares.sourceBackup", "networks", "kmsKeyName", "protocol"},
			computed:  []resource.PropertyKey{"networks"},
			outputs:   instanceOutputs,
		},
		diskType: {
			id:        diskID,
			replaceOn: []string{"type", "size", "diskEncryptionKey", "description", "image", "snapshot", "sourceDisk", "physicalBlockSizeBytes"},
			inPlace:   grows,
			outputs:   selfLink(diskID),
		},
		regionDiskType: {
			id:        regionDiskID,
			replaceOn: []string{"type", "size", "diskEncryptionKey", "description", "snapshot", "sourceDisk", "replicaZones", "physicalBlockSizeBytes"},
			inPlace:   grows,
			outputs:   selfLink(regionDiskID),
		},
	}
	for token, kind := range kinds {
		kinds[token] = s.keep(token, kind)
	}
	network := plainKinds()[networkType]
	network.create, network.find, network.remove = s.networkIsFree, s.findNetwork, s.removeNetwork
	kinds[networkType] = network
	return kinds
}

// keep has the resources of a kind in files.
func (s storage) keep(token tokens.Type, kind kind) kind {
	kind.create = func(id string) error {
		found, err := s.read(token, id)
		if err == nil && found != nil {
			err = fmt.Errorf("googleapi: Error 409: the resource %s already exists, alreadyExists", id)
		}
		return err
	}
	kind.find = func(id string) (resource.PropertyMap, error) { return s.read(token, id) }
	kind.read = func(_ context.Context, inputs resource.PropertyMap) (resource.PropertyMap, error) {
		return s.read(token, expand(kind.id, inputs))
	}
	kind.apply = func(_ context.Context, inputs resource.PropertyMap, _ func(string)) error {
		return s.write(token, expand(kind.id, inputs), inputs)
	}
	kind.remove = func(_ context.Context, state resource.PropertyMap) error {
		return s.remove(token, expand(kind.id, state))
	}
	return kind
}

// file is that of a resource. Its folder is named after the kind.
func (s storage) file(token tokens.Type, id string) string {
	return filepath.Join(s.dir, strings.ToLower(string(token.Name())), strings.ReplaceAll(id, "/", "_")+".json")
}

// read returns a resource's inputs, nil if there is none.
func (s storage) read(token tokens.Type, id string) (resource.PropertyMap, error) {
	return s.readFile(s.file(token, id))
}

func (s storage) readFile(path string) (resource.PropertyMap, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var inputs map[string]any
	if err := json.Unmarshal(text, &inputs); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return resource.NewPropertyMapFromMap(inputs), nil
}

func (s storage) write(token tokens.Type, id string, inputs resource.PropertyMap) error {
	path := s.file(token, id)
	text, err := json.MarshalIndent(inputs.Mappable(), "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// remove removes a resource, and the folders that it leaves empty.
func (s storage) remove(token tokens.Type, id string) error {
	path := s.file(token, id)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, folder := range []string{filepath.Dir(path), s.dir} {
		if os.Remove(folder) != nil {
			return nil // not empty
		}
	}
	return nil
}

// all are the inputs of the resources of a kind, in the order of their names.
func (s storage) all(token tokens.Type) ([]resource.PropertyMap, error) {
	paths, err := filepath.Glob(s.file(token, "*"))
	if err != nil {
		return nil, err
	}
	var found []resource.PropertyMap
	for _, path := range slices.Sorted(slices.Values(paths)) {
		inputs, err := s.readFile(path)
		if err != nil {
			return nil, err
		}
		found = append(found, inputs)
	}
	return found, nil
}

// instanceIn is an instance that stands in a network, or "".
func (s storage) instanceIn(network string) (string, error) {
	instances, err := s.all(instanceType)
	for _, inputs := range instances {
		for _, of := range objects(inputs, "networks") {
			if text(of, "network") == network {
				return expand(instanceID, inputs), nil
			}
		}
	}
	return "", err
}

func (s storage) networkIsFree(id string) error {
	instance, err := s.instanceIn(id)
	if err == nil && instance != "" {
		err = fmt.Errorf("googleapi: Error 409: the resource %s already exists, alreadyExists", id)
	}
	return err
}

func (s storage) findNetwork(id string) (resource.PropertyMap, error) {
	instance, err := s.instanceIn(id)
	if err != nil || instance == "" {
		return nil, err
	}
	names := strings.Split(id, "/")
	return resource.NewPropertyMapFromMap(map[string]any{
		"project": names[1], "name": names[len(names)-1], "autoCreateSubnetworks": false,
	}), nil
}

func (s storage) removeNetwork(_ context.Context, state resource.PropertyMap) error {
	id := expand("projects/${project}/global/networks/${name}", state)
	instance, err := s.instanceIn(id)
	if err == nil && instance != "" {
		err = fmt.Errorf("the network %s is already being used by %s", id, instance)
	}
	return err
}

// instanceOutputs are an instance's range and its address in it.
func instanceOutputs(inputs resource.PropertyMap) (map[string]any, error) {
	network := map[string]any{"connectMode": "DIRECT_PEERING", "reservedIpRange": "10.200.0.0/29", "ipAddresses": []any{"10.200.0.2"}}
	for _, given := range objects(inputs, "networks") {
		maps.Copy(network, given.Mappable())
	}
	return map[string]any{"networks": []any{network}, "effectiveLabels": object(inputs, "labels").Mappable()}, nil
}

// grows reports whether a disk's size does, which Compute Engine does in place.
func grows(path string, old, new resource.PropertyMap) bool {
	from, known := number(old, path)
	to, given := number(new, path)
	return path == "size" && known && given && to >= from
}

// functions look storage up.
func (s storage) functions() map[tokens.ModuleMember]function {
	return map[tokens.ModuleMember]function{
		"gcp:storage/getBuckets:getBuckets": s.getBuckets,
		"gcp:storage/getProjectServiceAccount:getProjectServiceAccount": func(resource.PropertyMap) (resource.PropertyMap, error) {
			email := "service-" + projectNumber + "@gs-project-accounts.iam.gserviceaccount.com"
			return resource.NewPropertyMapFromMap(map[string]any{"emailAddress": email, "member": "serviceAccount:" + email}), nil
		},
		"gcp:filestore/getInstance:getInstance":   s.lookup(instanceType, instanceID),
		"gcp:compute/getDisk:getDisk":             s.lookup(diskType, diskID),
		"gcp:compute/getRegionDisk:getRegionDisk": s.lookup(regionDiskType, regionDiskID),
	}
}

func (s storage) getBuckets(args resource.PropertyMap) (resource.PropertyMap, error) {
	all, err := s.all(bucketType)
	found := []any{}
	for _, inputs := range all {
		if strings.HasPrefix(text(inputs, "name"), text(args, "prefix")) && text(inputs, "project") == text(args, "project") {
			found = append(found, map[string]any{
				"name": text(inputs, "name"), "location": text(inputs, "location"), "labels": object(inputs, "labels").Mappable(),
			})
		}
	}
	return resource.NewPropertyMapFromMap(map[string]any{"buckets": found}), err
}

// lookup answers with a resource's state, the objects of which are lists in an
// answer, or the error of Google Cloud's provider.
func (s storage) lookup(token tokens.Type, id string) function {
	return func(args resource.PropertyMap) (resource.PropertyMap, error) {
		name := expand(id, args)
		inputs, err := s.read(token, name)
		if err != nil {
			return nil, err
		}
		if inputs == nil {
			return nil, fmt.Errorf("1 error occurred:\n\t* %s not found", name)
		}
		state, err := s.kinds()[token].state(inputs)
		if err != nil {
			return nil, err
		}
		state["effectiveLabels"] = state["labels"]
		for list, single := range map[resource.PropertyKey]resource.PropertyKey{"fileShares": "fileShares", "diskEncryptionKeys": "diskEncryptionKey"} {
			if state[single].IsObject() {
				state[list] = resource.NewProperty([]resource.PropertyValue{state[single]})
			}
		}
		return state, nil
	}
}

// Kept names what a folder of storage holds.
func Kept(dir string) ([]string, error) {
	s := storage{dir: dir}
	var kept []string
	for _, kind := range []struct{ token, called, id string }{
		{bucketType, "bucket", "${name}"},
		{instanceType, "Filestore instance", instanceID},
		{diskType, "disk", diskID},
		{regionDiskType, "regional disk", regionDiskID},
	} {
		all, err := s.all(tokens.Type(kind.token))
		if err != nil {
			return nil, err
		}
		for _, inputs := range all {
			kept = append(kept, kind.called+" "+expand(kind.id, inputs))
		}
	}
	return kept, nil
}

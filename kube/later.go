package kube

import (
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Later holds fields of an object that are outputs of other resources, by path. All
// other fields stay plain values, which a preview shows.
//
// A path has the form that Kubernetes prints: spec.csi.volumeAttributes.ip, or
// metadata.annotations[example.com/version] for a key that contains a dot.
type Later map[string]pulumi.Input

// into adds the fields to the inputs of an object.
func (l Later) into(inputs pulumi.Map) {
	for _, path := range slices.Sorted(maps.Keys(l)) {
		names := splitPath(path)
		parent, last := inputs, len(names)-1
		for _, name := range names[:last] {
			child, ok := parent[name].(pulumi.Map)
			if !ok {
				child = pulumi.Map{}
				parent[name] = child
			}
			parent = child
		}
		parent[names[last]] = l[path]
	}
}

// splitPath splits a path into names. A key in brackets is one name.
func splitPath(path string) []string {
	var names []string
	for path != "" {
		if key, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]"); ok && path[0] == '[' {
			names, path = append(names, key), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		names, path = append(names, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return names
}

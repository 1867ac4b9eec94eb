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
// A path is like spec.csi.volumeAttributes.ip.
type Later map[string]pulumi.Input

// into adds the fields to the inputs of an object.
func (l Later) into(inputs pulumi.Map) {
	for _, path := range slices.Sorted(maps.Keys(l)) {
		names := strings.Split(path, ".")
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

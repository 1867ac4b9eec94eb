package gke

import (
	"fmt"
	"net/netip"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
)

// CheckRanges refuses a change of the range of the nodes in the state of the stack that replaces the
// cluster. Google Cloud itself refuses another range for pods or services.
func CheckRanges(project string, cluster config.Cluster, resources map[resource.URN]map[string]any) error {
	if cluster.Existing != nil {
		return nil
	}
	for urn, subnetwork := range resources {
		// In another project or region, or by another name, all of the cluster is new.
		if urn.Type() != "gcp:compute/subnetwork:Subnetwork" || urn.Name() != cluster.Name || subnetwork["project"] != project || subnetwork["region"] != cluster.Region {
			continue
		}
		return checkNodeRange(cluster.Network.Nodes, fmt.Sprint(subnetwork["ipCidrRange"]))
	}
	return nil
}

// checkNodeRange refuses a range of the nodes that does not contain the range that they have.
// Google Cloud only lets such a range grow: any other change replaces the subnetwork, and the
// cluster in it. The range is not part of the cluster's identifier, because it could not grow
// there, so Pulumi would take the objects of the old cluster for objects of the new one, and leave
// the new cluster empty.
func checkNodeRange(wanted, has string) error {
	is, err := netip.ParsePrefix(wanted)
	if err != nil {
		return nil // config checks the range
	}
	was, err := netip.ParsePrefix(has)
	if err == nil && !contains(is, was) {
		return field.Invalid(field.NewPath("persia:cluster", "network", "nodes"), wanted,
			fmt.Sprintf("does not contain %[1]s, the range that the nodes have, so Google Cloud would replace the subnetwork and the cluster; write %[1]s, or a larger range that contains it. "+
				"To move the nodes to another range, also change persia:cluster.name, which replaces the cluster with everything in it", was))
	}
	return nil
}

// contains reports whether all addresses of a range are in another.
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

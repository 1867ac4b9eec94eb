package gke

import (
	"fmt"
	"net/netip"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/clusterspec"
	"persia/infra/compute"
)

// CheckNodeRange refuses a range of the nodes that does not contain the one that the
// state of the stack has. Google Cloud lets such a range grow and no more: any other
// change replaces the subnetwork, and the cluster that stands in it. That is not part of
// the cluster's identifier, in which a range could not grow, so Pulumi would take the
// objects of the old cluster for those of the new one, and leave that empty.
func CheckNodeRange(project string, cluster clusterspec.Cluster, resources map[resource.URN]map[string]any) error {
	wanted, err := netip.ParsePrefix(cluster.Network.Nodes)
	if cluster.Existing != nil || err != nil {
		return nil // config checks the range of a cluster that is created
	}
	for urn, subnetwork := range resources {
		// In another project or region, or by another name, all of the cluster is new.
		if urn.Type() != compute.SubnetworkType || urn.Name() != cluster.Name || subnetwork["project"] != project || subnetwork["region"] != cluster.Region {
			continue
		}
		had, err := netip.ParsePrefix(fmt.Sprint(subnetwork["ipCidrRange"]))
		if err == nil && !contains(wanted, had) {
			return field.Invalid(field.NewPath("persia:cluster", "network", "nodes"), wanted.String(),
				fmt.Sprintf("does not contain %[1]s, the range that the nodes have, so Google Cloud would replace the subnetwork and the cluster; write %[1]s, or a larger range that contains it. "+
					"To move the nodes to another range, also change persia:cluster.name, which replaces the cluster with everything in it", had))
		}
	}
	return nil
}

// contains reports whether all addresses of a range are in another.
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

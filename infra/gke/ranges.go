package gke

import (
	"fmt"
	"net/netip"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
)

// CheckRanges refuses changes of the address ranges in the state of the stack that Google Cloud
// does not carry out.
func CheckRanges(project string, cluster config.Cluster, resources map[resource.URN]map[string]any) error {
	if cluster.Existing != nil {
		return nil
	}
	for urn, subnetwork := range resources {
		// In another project or region, or by another name, all of the cluster is new.
		if urn.Type() != "gcp:compute/subnetwork:Subnetwork" || urn.Name() != cluster.Name || subnetwork["project"] != project || subnetwork["region"] != cluster.Region {
			continue
		}
		path := field.NewPath("persia:cluster", "network")
		if err := checkNodeRange(path.Child("nodes"), cluster.Network.Nodes, fmt.Sprint(subnetwork["ipCidrRange"])); err != nil {
			return err
		}
		had := secondaryRanges(subnetwork)
		if err := checkSecondaryRange(path.Child("pods"), cluster.Network.Pods, had[podRange]); err != nil {
			return err
		}
		return checkSecondaryRange(path.Child("services"), cluster.Network.Services, had[serviceRange])
	}
	return nil
}

// checkNodeRange refuses a range of the nodes that does not contain the range that they have.
// Google Cloud only lets such a range grow: any other change replaces the subnetwork, and the
// cluster in it. The range is not part of the cluster's identifier, because it could not grow
// there, so Pulumi would take the objects of the old cluster for objects of the new one, and leave
// the new cluster empty.
func checkNodeRange(path *field.Path, wanted, has string) error {
	is, err := netip.ParsePrefix(wanted)
	if err != nil {
		return nil // config checks the range
	}
	was, err := netip.ParsePrefix(has)
	if err == nil && !contains(is, was) {
		return field.Invalid(path, wanted,
			fmt.Sprintf("does not contain %[1]s, the range that the nodes have, so Google Cloud would replace the subnetwork and the cluster; write %[1]s, or a larger range that contains it. "+
				"To move the nodes to another range, also change persia:cluster.name, which replaces the cluster with everything in it", was))
	}
	return nil
}

// checkSecondaryRange refuses another range than the cluster uses. Google Cloud does not change
// such a range, and says so only in the middle of the update.
func checkSecondaryRange(path *field.Path, wanted, has string) error {
	if has == "" || has == wanted {
		return nil
	}
	return field.Invalid(path, wanted,
		fmt.Sprintf("the cluster uses %[1]s, and Google Cloud does not change a range in use; write %[1]s. "+
			"To move to another range, also change persia:cluster.name, which replaces the cluster with everything in it", has))
}

// secondaryRanges returns the further ranges of a subnetwork by name.
func secondaryRanges(subnetwork map[string]any) map[string]string {
	ranges := map[string]string{}
	all, _ := subnetwork["secondaryIpRanges"].([]any)
	for _, one := range all {
		if secondary, ok := one.(map[string]any); ok {
			ranges[fmt.Sprint(secondary["rangeName"])] = fmt.Sprint(secondary["ipCidrRange"])
		}
	}
	return ranges
}

// contains reports whether all addresses of a range are in another.
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

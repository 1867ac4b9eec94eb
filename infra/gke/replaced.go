package gke

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
)

// Replacement is a cluster in the state of a stack that an update replaces.
type Replacement struct {
	// Cluster is the name of the cluster that the update deletes.
	Cluster string
	// Settings are the settings that differ, in the order of [identifying].
	Settings []Setting
}

// Setting is a setting of the stack file with its value in the state and in the stack file.
type Setting struct {
	Path    *field.Path
	Was, Is string
}

// identifying are the settings of a cluster's identifier, by the part that holds each.
var identifying = []struct {
	part string
	path *field.Path
}{
	{"projects", field.NewPath("persia:project")},
	{"locations", field.NewPath("persia:cluster", "region")},
	{"clusters", field.NewPath("persia:cluster", "name")},
	{"controlPlane", field.NewPath("persia:cluster", "network", "controlPlane")},
	{"existing", field.NewPath("persia:cluster", "existing")},
}

// Replaced returns the cluster in the state that the update replaces with all that is in it, or
// nil. The provider of Kubernetes in the state has the identifier of its cluster.
func Replaced(project string, cluster config.Cluster, resources map[resource.URN]map[string]any) *Replacement {
	wanted := cluster.Name
	if cluster.Existing == nil {
		wanted = clusterIdentifier(Args{Project: project, Cluster: cluster})
	}
	for _, urn := range slices.Sorted(maps.Keys(resources)) {
		had, _ := resources[urn]["clusterIdentifier"].(string)
		if urn.Type() != "pulumi:providers:kubernetes" || had == "" || had == wanted {
			continue
		}
		was, is := parts(had), parts(wanted)
		replacement := &Replacement{Cluster: was["clusters"]}
		for _, setting := range identifying {
			if was[setting.part] != is[setting.part] {
				replacement.Settings = append(replacement.Settings, Setting{Path: setting.path, Was: was[setting.part], Is: is[setting.part]})
			}
		}
		if len(replacement.Settings) == 0 {
			// Another release wrote the identifier. The update deletes its cluster too.
			replacement.Settings = []Setting{{Path: field.NewPath("persia:cluster"), Was: had, Is: wanted}}
		}
		return replacement
	}
	return nil
}

// parts takes an identifier apart. An existing cluster has its name as identifier.
func parts(identifier string) map[string]string {
	location, settings, created := strings.Cut(identifier, "?")
	if !created {
		return map[string]string{"clusters": identifier, "existing": "set"}
	}
	all := map[string]string{"existing": "not set"}
	words := strings.Split(location, "/")
	for i := 0; i+1 < len(words); i += 2 {
		all[words[i]] = words[i+1]
	}
	query, _ := url.ParseQuery(settings)
	for name := range query {
		all[name] = query.Get(name)
	}
	return all
}

// CheckReplaced refuses to replace a cluster with running jobs, unless the stack file names it.
func CheckReplaced(replacement *Replacement, cluster config.Cluster, running []string) error {
	if len(running) == 0 || cluster.Replace == replacement.Cluster {
		return nil
	}
	var problems []error
	for _, setting := range replacement.Settings {
		problems = append(problems, field.Invalid(setting.Path, setting.Is,
			fmt.Sprintf("was %s, and a change replaces the cluster %s with everything in it, where the jobs that run are: %s. Restore the value; or set suspend: true on each job and run `pulumi up` first; or write persia:cluster.replace: %s to end them",
				setting.Was, replacement.Cluster, strings.Join(running, ", "), replacement.Cluster)))
	}
	return errors.Join(problems...)
}

// ReplaceWarning says that the permission to replace a cluster is not used, or returns "".
func ReplaceWarning(replacement *Replacement, cluster config.Cluster) string {
	if cluster.Replace == "" || replacement != nil && cluster.Replace == replacement.Cluster {
		return ""
	}
	return fmt.Sprintf("persia:cluster.replace: this update does not replace the cluster %s; remove the key, so that no later edit replaces a cluster unasked", cluster.Replace)
}

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

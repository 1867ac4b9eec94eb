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
			fmt.Sprintf("was %s, and a change replaces the cluster %s with everything in it, where the jobs that run are: %s. "+
				"Restore the value; or set suspend: true on each job and run `pulumi up` first; or write persia:cluster.replace: %s to end them",
				setting.Was, replacement.Cluster, strings.Join(running, ", "), replacement.Cluster)))
	}
	return errors.Join(problems...)
}

// ReplaceWarning says that the permission to replace a cluster is not used, or returns "".
func ReplaceWarning(replacement *Replacement, cluster config.Cluster) string {
	if cluster.Replace == "" || replacement != nil && cluster.Replace == replacement.Cluster {
		return ""
	}
	return fmt.Sprintf("persia:cluster.replace: this update does not replace the cluster %s; "+
		"remove the key, so that no later edit replaces a cluster unasked", cluster.Replace)
}

// inState returns a resource of the cluster in the state of the stack, or nil. In another project or region, or
// by another name, all of the cluster is new.
func inState(kind string, project string, cluster config.Cluster, resources map[resource.URN]map[string]any) map[string]any {
	for urn, had := range resources {
		here := had["region"] == cluster.Region || had["location"] == cluster.Region
		if string(urn.Type()) == kind && had["name"] == cluster.Name && had["project"] == project && here {
			return had
		}
	}
	return nil
}

// CheckRanges refuses other ranges than those in the state of the stack, if Google Cloud would replace the
// cluster, or refuse them: a cluster keeps its ranges for pods and services.
func CheckRanges(project string, cluster config.Cluster, resources map[resource.URN]map[string]any) error {
	subnetwork := inState("gcp:compute/subnetwork:Subnetwork", project, cluster, resources)
	if subnetwork == nil {
		return nil
	}
	problems := []error{checkNodeRange(cluster.Network.Nodes, fmt.Sprint(subnetwork["ipCidrRange"]))}
	secondary, _ := subnetwork["secondaryIpRanges"].([]any)
	if inState("gcp:container/cluster:Cluster", project, cluster, resources) == nil {
		secondary = nil // which nothing uses
	}
	for _, has := range secondary {
		has, _ := has.(map[string]any)
		name, is := fmt.Sprint(has["rangeName"]), fmt.Sprint(has["ipCidrRange"])
		wanted := map[string]string{podRange: cluster.Network.Pods, serviceRange: cluster.Network.Services}[name]
		if wanted != is && wanted != "" {
			problems = append(problems, field.Invalid(field.NewPath("persia:cluster", "network", name), wanted,
				fmt.Sprintf("is %[1]s in the cluster, which keeps that range; write %[1]s, and use fewer nodes "+
					"or a lower maxPodsPerNode if it is too small. To have another range, also change persia:cluster.name, "+
					"which replaces the cluster with everything in it", is)))
		}
	}
	return errors.Join(problems...)
}

// checkNodeRange refuses a range of the nodes that does not contain the range that they have. Google Cloud only lets
// such a range grow: any other change replaces the subnetwork, and the cluster in it. The range is not part of the
// cluster's identifier, because it could not grow there, so Pulumi would take the objects of the old cluster for
// objects of the new one, and leave the new cluster empty.
func checkNodeRange(wanted, has string) error {
	is, err := netip.ParsePrefix(wanted)
	if err != nil {
		return nil // config checks the range
	}
	was, err := netip.ParsePrefix(has)
	if err == nil && !contains(is, was) {
		return field.Invalid(field.NewPath("persia:cluster", "network", "nodes"), wanted,
			fmt.Sprintf("does not contain %[1]s, the range that the nodes have, "+
				"so Google Cloud would replace the subnetwork and the cluster; write %[1]s, or a larger range that contains it. "+
				"To move the nodes to another range, also change persia:cluster.name, which replaces the cluster with everything in it", was))
	}
	return nil
}

// contains reports whether all addresses of a range are in another.
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

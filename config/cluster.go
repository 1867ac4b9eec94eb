package config

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"persia/gcp"
)

// longestClusterName leaves room for the node identity, a service account
// called NAME-nodes, of at most 30 characters (IAM, "Create service accounts").
// GKE itself takes 40.
const longestClusterName = 30 - len("-nodes")

var (
	projectForm = regexp.MustCompile(`^[a-z][a-z0-9-]{4,28}[a-z0-9]$`)
	regionForm  = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+$`)
	zoneForm    = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-[a-z]$`)
)

func (v *validator) project() {
	if v.stack.Cluster.Existing != nil {
		return
	}
	path := field.NewPath(projectKey)
	if v.stack.Project == "" {
		v.required(path, "write the id of the Google Cloud project, like my-project-123")
		return
	}
	if !projectForm.MatchString(v.stack.Project) {
		v.invalid(path, v.stack.Project, "must be a project id: 6 to 30 lower case letters, digits and hyphens, starting with a letter and not ending with a hyphen; `gcloud projects list` shows yours")
	}
}

func (v *validator) cluster() {
	path, c := field.NewPath(clusterKey), &v.stack.Cluster
	if c.Existing != nil {
		v.existingCluster()
		return
	}
	v.name(path.Child("name"), c.Name, validation.IsDNS1035Label)
	v.atMost(longestClusterName, path.Child("name"), c.Name, "so that the node identity NAME-nodes has at most 30")
	v.region(path.Child("region"), c.Region)
	if len(c.Zones) == 0 {
		v.required(path.Child("zones"), "write at least one zone of the region, like [us-central1-a]")
	}
	v.zones(path.Child("zones"), c.Zones)
	// GKE has EXTENDED too, which the provider, pulumi-gcp 7.38, refuses.
	oneOf(v, path.Child("releaseChannel"), c.ReleaseChannel, "RAPID", "REGULAR", "STABLE")
	v.systemPool(path.Child("systemPool"))
	v.clusterSettings(path)
}

func (v *validator) region(path *field.Path, region string) {
	switch {
	case region == "":
		v.required(path, "write a region, like us-central1")
	case zoneForm.MatchString(region):
		v.invalid(path, region, "is a zone; write the region, %s, and the zone in zones", region[:strings.LastIndex(region, "-")])
	case !regionForm.MatchString(region):
		v.invalid(path, region, "must be a region, like us-central1")
	}
}

// leastSystemNodes is 1 for a cluster that nobody would miss.
func (c *Cluster) leastSystemNodes() int {
	if c.DeletionProtection != nil && !*c.DeletionProtection {
		return 1
	}
	return 2
}

func (v *validator) systemPool(path *field.Path) {
	pool, zones := v.stack.Cluster.SystemPool, len(v.stack.Cluster.Zones)
	machineType := path.Child("machineType")
	switch m, ok := v.machine(machineType, pool.MachineType); {
	case ok && m.GPUs > 0:
		v.invalid(machineType, m.Type, "has GPUs, which nothing in the system pool uses; write a type without, like e2-standard-4")
	case ok && !slices.Contains(m.BootDisks(), "pd-balanced"):
		v.invalid(machineType, m.Type, "takes no pd-balanced, the boot disk of the system pool; write a type that does, like e2-standard-4")
	}
	if least := v.stack.Cluster.leastSystemNodes(); pool.Nodes < least {
		v.invalid(path.Child("nodes"), pool.Nodes, "must be at least %d, so that the cluster's own services survive the loss of a node; a cluster with deletionProtection: false may have 1", least)
		return
	}
	v.evenlySpread(path.Child("nodes"), pool.Nodes, zones)
}

// machine looks a machine type up.
func (v *validator) machine(path *field.Path, machineType string) (gcp.Machine, bool) {
	m, ok := v.stack.machineType(machineType)
	switch near := nearest(machineType, v.stack.machineTypes()); {
	case !v.decoded(machineTypesKey):
	case ok:
	case machineType == "":
		v.required(path, "write a machine type, like n2-standard-8")
	case len(near) > 0:
		v.invalid(path, machineType, "is no machine type that is known here; did you mean %s? Or describe it in %s", or(near), machineTypesKey)
	default:
		v.invalid(path, machineType, "is no machine type that is known here; write a predefined one that is not shared-core, like n2-standard-8 or a2-highgpu-8g, or describe it in %s", machineTypesKey)
	}
	return m, ok
}

// mostNodesOfCluster is GKE's limit (GKE, "Quotas and limits").
const mostNodesOfCluster = 15000

func (v *validator) notTooMany(path *field.Path, nodes int) {
	if nodes > mostNodesOfCluster {
		v.invalid(path, nodes, "must be at most %d, as GKE takes no more in a cluster", mostNodesOfCluster)
	}
}

// evenlySpread checks that a fixed number of nodes can be spread over zones.
// GKE takes a number of nodes a zone.
func (v *validator) evenlySpread(path *field.Path, nodes, zones int) {
	v.notTooMany(path, nodes)
	if zones == 0 || nodes%zones == 0 {
		return
	}
	below, above := nodes-nodes%zones, nodes-nodes%zones+zones
	if below == 0 {
		v.invalid(path, nodes, "must be a multiple of the %d zones, to be spread over them evenly; write %d, or fewer zones", zones, above)
		return
	}
	v.invalid(path, nodes, "must be a multiple of the %d zones, to be spread over them evenly; write %d or %d", zones, below, above)
}

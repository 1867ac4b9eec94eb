package clusterspec

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

// longestName leaves room for the node identity, the service account NAME-nodes, which has at
// most 30 characters (IAM, "Create service accounts"). GKE itself allows 40.
const longestName = 30 - len("-nodes")

var roleForm = regexp.MustCompile(`^(roles/[a-z][a-zA-Z0-9.]*|(projects|organizations)/[^/]+/roles/[a-zA-Z0-9_.]+)$`)

// Check checks a resolved cluster that the stack creates.
func (c *Cluster) Check(p *check.Problems, path *field.Path, needs Needs) {
	p.Name(path.Child("name"), c.Name, validation.IsDNS1035Label)
	p.AtMost(longestName, path.Child("name"), c.Name, "so that the node identity NAME-nodes has at most 30")
	if c.Name == "default" {
		p.Invalid(path.Child("name"), c.Name, "is also the name of the cluster's network, and every project already has a network with that name; choose another")
	}
	check.Region(p, path.Child("region"), c.Region)
	check.Zones(p, path.Child("zones"), c.Region, c.Zones)
	checkMaintenance(p, path.Child("maintenance"), c.Maintenance)
	checkPublicNodes(p, path, c)
	checkNodeRoles(p, path.Child("nodeRoles"), c.NodeRoles)
	c.checkEncryption(p, path.Child("encryption"))
	checkComponents(p, path.Child("logging", "components"), c.Logging.Components, gcp.LoggingComponents)
	checkComponents(p, path.Child("monitoring", "components"), c.Monitoring.Components, gcp.MonitoringComponents)
	checkBackup(p, path.Child("backup"), c.Backup)
	c.checkAuthorizedNetworks(p, path)
	c.checkNetwork(p, path.Child("network"), needs)
}

// off reports whether the user turned a setting off. It returns false if the setting could
// not be decoded.
func off(p *check.Problems, path *field.Path, setting bool) bool { return !setting && p.Decoded(path) }

// checkPublicNodes refuses settings that require private nodes in a cluster without them.
func checkPublicNodes(p *check.Problems, path *field.Path, c *Cluster) {
	if !off(p, path.Child("privateNodes"), c.PrivateNodes) {
		return
	}
	if c.PrivateEndpoint {
		p.Invalid(path.Child("privateEndpoint"), true, "requires private nodes, because GKE supports a private endpoint only with them; remove it, or remove privateNodes: false")
	}
	if c.Network.ControlPlane != "" {
		p.Forbidden(path.Child("network", "controlPlane"), "privateNodes is false, and without private nodes the control plane has no range in the network; remove %q, or remove privateNodes: false", c.Network.ControlPlane)
	}
}

func checkNodeRoles(p *check.Problems, path *field.Path, roles []string) {
	for i, role := range roles {
		checkNodeRole(p, path.Index(i), role)
	}
	check.Unique(roles, func(role string) string { return role }, func(i, first int, role string) {
		p.Duplicate(path.Index(i), role, "is already in nodeRoles[%d]; write each role once", first)
	})
}

func checkNodeRole(p *check.Problems, path *field.Path, role string) {
	switch role {
	case "":
		p.Required(path, "write a role, like roles/storage.objectViewer")
	case "roles/owner", "roles/editor":
		p.Invalid(path, role, "allows anyone who breaks out of a pod to change everything in the project; write only the roles that the nodes need, like roles/storage.objectViewer")
	case gcp.RoleDefaultNode, gcp.RoleImageReader:
		p.Invalid(path, role, "is a role that every node already has; remove it")
	default:
		switch {
		case administers(role):
			p.Invalid(path, role, "allows anyone who breaks out of a pod to administer that service in the whole project; write only the roles that the nodes need, like roles/storage.objectViewer")
		case !roleForm.MatchString(role):
			p.Invalid(path, role, "must be a role, like roles/storage.objectViewer, or a custom role, as projects/P/roles/R or organizations/N/roles/R")
		}
	}
}

// administers reports whether a predefined role is an administrator's, or can impersonate
// service accounts (IAM, "Roles and permissions").
func administers(role string) bool {
	name, predefined := strings.CutPrefix(role, "roles/")
	_, title, _ := strings.Cut(name, ".")
	return predefined && (strings.HasSuffix(strings.ToLower(title), "admin") || strings.HasPrefix(name, "iam."))
}

// checkEncryption checks keys and their locations: the control plane accepts keys of its own
// region (GKE, "Encrypt secrets at the application layer"), and Compute Engine keys of the
// disk's region and global ones.
func (c *Cluster) checkEncryption(p *check.Problems, path *field.Path) {
	e := c.Encryption
	check.KMSKey(p, path.Child("secrets"), e.Secrets, "GKE", c.Region, c.Region)
	check.KMSKey(p, path.Child("bootDisks"), e.BootDisks, "Compute Engine", c.Region, c.Region, "global")
}

// checkComponents checks the observed parts of GKE. GKE requires the first known component
// with any other.
func checkComponents(p *check.Problems, path *field.Path, components, known []string) {
	valid := p.Decoded(path)
	for _, component := range components {
		valid = valid && slices.Contains(known, component)
	}
	check.Once(p, path, components, "write each component once")
	if system := known[0]; valid && len(components) > 0 && !slices.Contains(components, system) {
		p.Required(path, "write %s too, which GKE requires with any other component, or [] for none", system)
	}
}

package google

import (
	"fmt"
	"strings"

	"persia/sandbox/gcp/google/merge"
)

// rules are the behavior of one kind of resource that its recorded answers do not show.
// All but notFound may be nil.
type rules struct {
	// defaults returns the fields that the service sets by itself.
	defaults func(name string, request Body) Body
	// check refuses a request or an updated body.
	check func(c *Cloud, name string, body Body) error
	// create makes the changes that only a creation makes.
	create func(c *Cloud, name string, body Body) error
	// normalize completes a body after a creation and after each update.
	normalize func(c *Cloud, name string, body Body) error
	// inUse names the user of a resource, which keeps it from being deleted.
	inUse func(c *Cloud, name string) (string, error)
	// deleted removes the resources that the service deletes with a resource.
	deleted func(c *Cloud, name string, body Body) error
	// gke is for GKE's resources: it refuses updates that say nothing, and leaves
	// zero values out of its answers.
	gke bool
	// shared resources are entries of a policy: adding one twice does nothing.
	shared bool
}

// leftOut returns the fields that an answer omits.
func (r rules) leftOut() func(any) bool {
	if r.gke {
		return merge.IsZero
	}
	return merge.IsEmpty
}

func (rules) notFound(name string) error {
	return refuse(404, "notFound", "The resource '%s' was not found", name)
}

// kinds are the services' resources, by the names of their recorded answers.
var kinds map[string]rules

func init() { // the rules look other kinds up
	kinds = map[string]rules{
		"container.cluster":           clusterRules(),
		"container.nodePool":          nodePoolRules(),
		"compute.network":             {defaults: recorded("compute.network"), normalize: normalizeNetwork, inUse: networkUser},
		"compute.subnetwork":          {defaults: recorded("compute.subnetwork"), check: checkSubnetwork, normalize: normalizeSubnetwork, inUse: subnetworkUser},
		"compute.router":              {defaults: recorded("compute.router"), check: networkExists, normalize: normalizeRouter, deleted: deleteNATs},
		"compute.router.nat":          {defaults: natDefaults, check: routerExists},
		"compute.disk":                {defaults: recorded("compute.disk"), check: checkDisk, normalize: normalizeDisk},
		"compute.regionDisk":          {defaults: recorded("compute.regionDisk"), check: checkDisk, normalize: normalizeDisk},
		"file.instance":               {defaults: recorded("file.instance"), normalize: normalizeInstance},
		"gkebackup.backupPlan":        {defaults: recorded("gkebackup.backupPlan"), normalize: normalizePlan},
		"storage.bucket":              {defaults: bucketDefaults, normalize: normalizeBucket},
		"iam.serviceAccount":          {defaults: accountDefaults, normalize: normalizeAccount},
		"artifactregistry.repository": {defaults: nothing, normalize: normalizeRepository},
		// A member of a policy.
		"iam.member":            {defaults: nothing, check: memberExists, shared: true},
		"serviceusage.identity": {defaults: nothing, normalize: normalizeIdentity, shared: true},
	}
}

func rulesOf(kind string) (rules, error) {
	found, known := kinds[kind]
	if !known {
		return rules{}, fmt.Errorf("the simulated Google Cloud has no %s", kind)
	}
	return found, nil
}

func nothing(string, Body) Body { return Body{} }

// recorded takes the fields that a service set by itself in one recorded answer.
func recorded(answer string) func(string, Body) Body {
	return func(string, Body) Body { return serverSet(answer) }
}

// element returns the part of a name after a collection: the zone after "zones".
func element(name, collection string) string {
	_, after, found := strings.Cut("/"+name, "/"+collection+"/")
	if !found {
		return ""
	}
	first, _, _ := strings.Cut(after, "/")
	return first
}

// user finds a resource of a kind whose field ends in a name.
func user(c *Cloud, kind, name string, fields ...string) (string, error) {
	bodies, err := c.kept.All(kind)
	if err != nil {
		return "", err
	}
	for user, body := range bodies {
		for _, field := range fields {
			value := text(body, field)
			if value == name || strings.HasSuffix(value, "/"+name) {
				return user, nil
			}
		}
	}
	return "", nil
}

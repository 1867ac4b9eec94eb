package google

import "strings"

// rules are what one kind of resource has that its recorded answers do not show. All may be zero.
type rules struct {
	// defaults returns the fields that the service sets by itself.
	defaults func(request Body) Body
	// complete refuses or completes a body. old is the body before an update, nil in a creation.
	complete func(c *Cloud, name string, body, old Body) error
	// needs are the resources without which the resource cannot be.
	needs []need
	// gke is for GKE's resources: it refuses updates that say nothing, and leaves zero values out of its answers.
	gke bool
	// shared resources are entries of a policy: adding one twice does nothing.
	shared bool
}

// need is a resource that another one needs. It cannot be deleted before the other, unless whole
// says that the other is a part of it, which is deleted with it.
type need struct {
	kind string
	// of returns the name of the resource that another one needs.
	of    func(name string, body Body) string
	whole bool
	// foreign says that it may be the user's own, which is not simulated.
	foreign bool
}

// The kinds of GKE's resources.
const (
	Cluster  = "container.cluster"
	NodePool = "container.nodePool"
)

// kinds are the services' resources, by the names of their recorded answers.
var kinds = map[string]rules{
	"compute.network":    {defaults: fields("compute.network"), complete: completeNetwork},
	"compute.subnetwork": {defaults: fields("compute.subnetwork"), complete: completeSubnetwork, needs: inNetwork("network")},
	"compute.router":     {defaults: fields("compute.router"), complete: completeRouter, needs: inNetwork("network")},
	"compute.router.nat": {defaults: natDefaults, needs: []need{{kind: "compute.router", of: routerOf, whole: true}}},
	"compute.disk":       {defaults: fields("compute.disk"), complete: completeDisk},
	"compute.regionDisk": {defaults: fields("compute.regionDisk"), complete: completeDisk},
	Cluster: {defaults: clusterDefaults, complete: completeCluster, gke: true,
		needs: append(inNetwork("networkConfig.network"), need{kind: "compute.subnetwork", of: field("networkConfig.subnetwork")})},
	NodePool: {defaults: poolDefaults, complete: completePool, gke: true,
		needs: []need{{kind: Cluster, of: ClusterOf, whole: true}}},
	"file.instance": {defaults: fields("file.instance"), complete: completeInstance,
		needs: []need{{kind: "compute.network", of: networkOfInstance, foreign: true}}},
	"storage.bucket":              {defaults: bucketDefaults, complete: completeBucket},
	"iam.serviceAccount":          {defaults: fields("iam.serviceAccount"), complete: completeAccount},
	"artifactregistry.repository": {complete: completeRepository},
	"iam.member":                  {complete: checkMember, shared: true},
	"serviceusage.identity":       {complete: completeIdentity, shared: true},
}

// fields returns the fields that a service set by itself in a recorded answer.
func fields(answer string) func(Body) Body {
	return func(Body) Body { return serverSet(answer) }
}

func field(path string) func(string, Body) string {
	return func(_ string, body Body) string { return Text(body, path) }
}

// defaultNetwork is a network that every project has, with a subnetwork of its name in every region. Neither is kept.
const defaultNetwork = "default"

func inNetwork(path string) []need {
	return []need{{kind: "compute.network", of: func(name string, body Body) string { return networkOf(name, Text(body, path)) }}}
}

// networkOf returns the name of a network that a resource names by a URL, by a path, or by its name
// alone, as one of its own project.
func networkOf(name, link string) string {
	if i := strings.Index(link, "projects/"); i >= 0 {
		return link[i:]
	}
	return "projects/" + Element(name, "projects") + "/global/networks/" + link
}

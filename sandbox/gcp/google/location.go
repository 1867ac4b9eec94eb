package google

import (
	"cmp"
	"fmt"
	"strings"
)

// defaultNetwork is a network that every project has, with a subnetwork of its name in
// every region. Neither is kept.
const defaultNetwork = "default"

// networksOfCluster returns the network and the subnetwork of a cluster.
func networksOfCluster(name string, body Body) (network, subnetwork string) {
	project := element(name, "projects")
	network = pathOf(networksOf(project), cmp.Or(text(body, "network"), defaultNetwork))
	subnetworks := fmt.Sprintf("projects/%s/regions/%s/subnetworks/", project, location(name))
	return network, pathOf(subnetworks, cmp.Or(text(body, "subnetwork"), segment(network)))
}

func networksOf(project string) string { return fmt.Sprintf("projects/%s/global/networks/", project) }

// pathOf returns the path of a resource that is named by a URL, by a path, or by its name alone,
// which is one of a collection.
func pathOf(collection, link string) string {
	if at := strings.Index(link, "projects/"); at >= 0 {
		return link[at:]
	}
	return collection + link
}

// networkExists refuses a resource in a network that does not exist†, with the text of the recorded
// answer to a read of a missing resource.
func networkExists(c *Cloud, name string, body Body) error {
	network := pathOf(networksOf(element(name, "projects")), text(body, "network"))
	exists, err := c.hasNetwork(network)
	if err == nil && !exists {
		err = refuse(404, "notFound", "The resource '%s' was not found", network)
	}
	return err
}

func (c *Cloud) hasNetwork(network string) (bool, error) {
	if segment(network) == defaultNetwork {
		return true, nil
	}
	body, err := c.kept.Read("compute.network", network)
	return body != nil, err
}

// checkLocation refuses a new cluster in a network, a subnetwork or a range that does not
// exist†. The words are from public reports of such refusals, except for the range of
// Services. The location of a cluster never changes.
func checkLocation(c *Cloud, name string, body Body) error {
	existing, err := c.kept.Read("container.cluster", name)
	if err != nil || existing != nil {
		return err
	}
	network, subnetwork := networksOfCluster(name, body)
	exists, err := c.hasNetwork(network)
	if err != nil {
		return err
	}
	if !exists {
		return refuse(400, "badRequest", "Project %q has no network named %q.", element(network, "projects"), segment(network))
	}
	in, err := c.kept.Read("compute.subnetwork", subnetwork)
	if err != nil {
		return err
	}
	ofDefault := segment(network) == defaultNetwork && segment(subnetwork) == defaultNetwork
	if element(subnetwork, "regions") != location(name) || in == nil && !ofDefault {
		return refuse(400, "badRequest", "Subnet %q does not exist in specified region %q.", subnetwork, location(name))
	}
	return checkRanges(network, subnetwork, in, object(body, "ipAllocationPolicy"))
}

// checkRanges refuses ranges that a subnetwork does not have.
func checkRanges(network, subnetwork string, in, policy Body) error {
	for _, of := range []struct{ field, called string }{{"cluster", "Pod"}, {"services", "Services"}} {
		secondary := text(policy, of.field+"SecondaryRangeName")
		if secondary != "" && rangeOf(in, secondary) == "" {
			return refuse(400, "badRequest", "%s secondary range %q not found in network %q, subnetwork %q.",
				of.called, secondary, computeURL+network, segment(subnetwork))
		}
	}
	return nil
}

// rangeOf returns a secondary range of a subnetwork by its name, or "".
func rangeOf(subnetwork Body, name string) string {
	for _, of := range list(subnetwork, "secondaryIpRanges") {
		if secondary := of.(Body); text(secondary, "rangeName") == name {
			return text(secondary, "ipCidrRange")
		}
	}
	return ""
}

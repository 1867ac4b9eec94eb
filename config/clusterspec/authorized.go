package clusterspec

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// mostAuthorizedNetworks is the limit of GKE.
const mostAuthorizedNetworks = 100

func (c *Cluster) checkAuthorizedNetworks(p *check.Problems, cluster *field.Path) {
	networks, path := c.AuthorizedNetworks, cluster.Child("authorizedNetworks")
	if len(networks) > mostAuthorizedNetworks {
		p.Invalid(path, len(networks), "must be at most %d networks, the limit of GKE; merge adjacent ranges", mostAuthorizedNetworks)
	}
	private := len(networks) > 0
	for i, n := range networks {
		c.checkAuthorizedNetwork(p, path.Index(i), n)
		prefix, err := netip.ParsePrefix(n.CIDR)
		private = private && err == nil && (prefix.Addr().IsPrivate() || check.Documentation(prefix.Addr()))
	}
	const first = "the stack creates the network, in which no machine can be when `pulumi up` creates the first Kubernetes objects"
	switch {
	case c.PrivateEndpoint:
		p.Warn(cluster.Child("privateEndpoint"), "Pulumi must run inside the network %s, and %s; bring the cluster up without privateEndpoint first, and connect your machine", c.Name, first)
	case private:
		p.Warn(path, "has only ranges that nobody has on the internet, and %s; add the public address that you connect from", first)
	}
	check.UniqueField(p, path, "cidr", networks, func(n AuthorizedNetwork) string { return n.CIDR }, "is already in authorizedNetworks[%d]; write each range once")
}

func (c *Cluster) checkAuthorizedNetwork(p *check.Problems, path *field.Path, n AuthorizedNetwork) {
	if n.Name == "" {
		p.Required(path.Child("name"), "write a name for the network, like office")
	}
	at := path.Child("cidr")
	switch prefix, ok := checkCIDR(p, at, n.CIDR); {
	case !ok:
	case prefix.Bits() == 0:
		p.Invalid(at, n.CIDR, "opens the control plane to the world; write the range that its operators connect from")
	case prefix.Bits() < 8:
		p.Invalid(at, n.CIDR, "opens the control plane to almost the whole world; write the range that its operators connect from, /8 or smaller")
	case c.PrivateEndpoint && !reserved(prefix):
		p.Invalid(at, n.CIDR, "contains public addresses, which cannot reach the private endpoint, and which GKE refuses together with it; write a range of a network that is connected to the cluster's network, or remove privateEndpoint")
	default:
		check.WarnOfDocumentation(p, at, n.CIDR, "write the range that its operators connect from")
	}
}

// reservedRanges contain no public addresses (VPC, "Subnets", "Valid IPv4 ranges").
var reservedRanges = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
}

// Public reports whether machines on the internet can have an address.
func Public(address netip.Addr) bool {
	return !address.Is4() || !reserved(netip.PrefixFrom(address, address.BitLen()))
}

func reserved(prefix netip.Prefix) bool {
	return slices.ContainsFunc(reservedRanges, func(r netip.Prefix) bool {
		return r.Bits() <= prefix.Bits() && r.Contains(prefix.Addr())
	})
}

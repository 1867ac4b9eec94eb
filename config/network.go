package config

import (
	"fmt"
	"maps"
	"math/bits"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
)

// AuthorizedNetwork is a range of addresses that may reach the control plane.
type AuthorizedNetwork struct {
	// Name says whose network it is, like office.
	Name string `json:"name"`
	// CIDR is the range in CIDR notation, like 203.0.113.0/24.
	CIDR string `json:"cidr"`
}

// Network describes the cluster's own network: its address ranges, in CIDR notation, which
// must not overlap, and which of its traffic is visible.
type Network struct {
	// Nodes is the primary range of the subnetwork, with an address for each node. Default
	// 10.0.0.0/20, for 4092 nodes, or larger if the pools need it.
	Nodes string `json:"nodes,omitempty"`
	// Pods is the secondary range for pods. GKE reserves twice maxPodsPerNode addresses for each
	// node, a /24 for 110. Default 10.64.0.0/14, for 1024 such nodes, or larger if the pools need
	// it.
	Pods string `json:"pods,omitempty"`
	// Services is the secondary range for services.
	Services string `json:"services,omitempty" default:"10.1.0.0/20"`
	// ControlPlane is the /28 of the control plane. Only clusters with private nodes have
	// one. Default 172.16.0.0/28.
	ControlPlane string `json:"controlPlane,omitempty"`
	// FlowLogs writes a sample of the connections of all nodes to Cloud Logging, which
	// bills them by volume.
	FlowLogs bool `json:"flowLogs,omitempty"`
	// IntranodeVisibility routes traffic between pods of a node through the network, for flow logs
	// and firewall rules. A change restarts network components on all nodes.
	IntranodeVisibility bool `json:"intranodeVisibility,omitempty"`
}

// addressNeeds counts the addresses that the nodes of all pools need at their maximum.
type addressNeeds struct {
	Nodes        int
	PodAddresses int // reserved by GKE for the pods of the nodes
}

// nodeAddresses returns the number of addresses that the subnetwork needs.
func (n addressNeeds) nodeAddresses() int { return n.Nodes + capacity.ReservedAddresses }

// addressRange is a range of the network, with the shortest and longest prefix that GKE
// allows (GKE, "VPC-native clusters", "IP address ranges"; for the control plane "Best
// practices for GKE networking").
type addressRange struct {
	name              string
	cidr              string
	shortest, longest int
	prefix            netip.Prefix
}

// checkNetwork checks each range, that ranges do not overlap, and that they have room for the
// nodes.
func (c *Cluster) checkNetwork(p *input.Problems, path *field.Path, needs addressNeeds) {
	n := c.Network
	ranges := []addressRange{
		{name: "nodes", cidr: n.Nodes, shortest: 8, longest: 29},
		{name: "pods", cidr: n.Pods, shortest: 9, longest: 21},
		{name: "services", cidr: n.Services, shortest: 16, longest: 27},
	}
	if c.PrivateNodes {
		ranges = append(ranges, addressRange{name: "controlPlane", cidr: n.ControlPlane, shortest: 28, longest: 28})
	}
	var valid []addressRange
	for _, r := range ranges {
		prefix, ok := checkCIDR(p, path.Child(r.name), r.cidr)
		if r.prefix = prefix; ok && checkSize(p, path, r) && checkUsable(p, path, r) {
			checkOverlap(p, path, r, valid)
			if !reserved(prefix) {
				p.Warn(path.Child(r.name), "%s has public addresses, and unless they are yours, nothing in the cluster reaches their owners any more; write a private range, like 10.0.0.0/%d", r.cidr, prefix.Bits())
			}
			valid = append(valid, r)
		}
	}
	for _, r := range valid {
		switch r.name {
		case "nodes":
			checkHoldsNodes(p, path, r, needs)
		case "pods":
			checkHoldsPods(p, path, r, needs)
		}
	}
}

// checkCIDR parses a range of IPv4 addresses in CIDR notation.
func checkCIDR(p *input.Problems, path *field.Path, cidr string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(cidr)
	switch {
	case cidr == "":
		p.Required(path, "write a range like 10.0.0.0/20")
	case err != nil:
		p.Invalid(path, cidr, "must be a range of IPv4 addresses in CIDR notation, like 10.0.0.0/20")
	case !prefix.Addr().Is4():
		p.Invalid(path, cidr, "must be a range of IPv4 addresses, like 10.0.0.0/20")
	case prefix != prefix.Masked():
		p.Invalid(path, cidr, "must be a network, without host bits; write %s", prefix.Masked())
	default:
		return prefix, true
	}
	return netip.Prefix{}, false
}

func checkSize(p *input.Problems, path *field.Path, r addressRange) bool {
	length := r.prefix.Bits()
	switch {
	case length >= r.shortest && length <= r.longest:
		return true
	case r.shortest == r.longest:
		p.Invalid(path.Child(r.name), r.cidr, "must be exactly a /%d, because GKE requires that for the control plane; write %s/%d", r.longest, r.prefix.Addr(), r.longest)
	default:
		p.Invalid(path.Child(r.name), r.cidr, "must be from a /%d to a /%d; write %s/%d", r.shortest, r.longest, r.prefix.Addr(), min(max(length, r.shortest), r.longest))
	}
	return false
}

// prohibited are the ranges that a subnetwork cannot use (VPC, "Subnets", "Prohibited IPv4
// subnet ranges"), and the range of Docker on nodes (GKE, "VPC-native clusters").
var prohibited = map[string]string{
	"0.0.0.0/8":          "the local network",
	"127.0.0.0/8":        "loopback",
	"169.254.0.0/16":     "link-local addresses, including the metadata server's",
	"224.0.0.0/4":        "multicast",
	"255.255.255.255/32": "broadcast",
	"199.36.153.4/30":    "Google's own APIs",
	"199.36.153.8/30":    "Google's own APIs",
	"172.17.0.0/16":      "Docker's bridge on the nodes",
}

// checkUsable refuses ranges that Google Cloud reserves.
func checkUsable(p *input.Problems, path *field.Path, r addressRange) bool {
	for _, cidr := range slices.Sorted(maps.Keys(prohibited)) {
		if r.prefix.Overlaps(netip.MustParsePrefix(cidr)) {
			p.Invalid(path.Child(r.name), r.cidr, "overlaps %s, which is reserved for %s; write a private range, like 10.0.0.0/%d", cidr, prohibited[cidr], r.prefix.Bits())
			return false
		}
	}
	return true
}

func checkOverlap(p *input.Problems, path *field.Path, r addressRange, others []addressRange) {
	for _, other := range others {
		if r.prefix.Overlaps(other.prefix) {
			p.Invalid(path.Child(r.name), r.cidr, "overlaps %s, which is %s; write ranges that do not overlap", other.name, other.prefix)
		}
	}
}

// checkHoldsNodes checks that there is an address for each node.
func checkHoldsNodes(p *input.Problems, path *field.Path, r addressRange, needs addressNeeds) {
	if holds := rangeSize(r.prefix) - capacity.ReservedAddresses; needs.Nodes > holds {
		p.Invalid(path.Child(r.name), r.cidr, "has room for %d nodes, but the stack has up to %d; write a /%d or larger, or use fewer nodes", holds, needs.Nodes, max(prefixFor(needs.nodeAddresses()), r.shortest))
	}
}

// checkHoldsPods checks that there is a block of pod addresses for each node.
func checkHoldsPods(p *input.Problems, path *field.Path, r addressRange, needs addressNeeds) {
	if needs.PodAddresses > rangeSize(r.prefix) {
		p.Invalid(path.Child(r.name), r.cidr, "has %d addresses, but the pods of up to %d nodes need %d; write a /%d or larger, use fewer nodes, or lower maxPodsPerNode", rangeSize(r.prefix), needs.Nodes, needs.PodAddresses, max(prefixFor(needs.PodAddresses), r.shortest))
	}
}

// Resolve gives the system pool of a cluster that the stack creates a node for each zone.
func (c *Cluster) Resolve(zones int) {
	if c.SystemPool.Nodes == 0 {
		c.SystemPool.Nodes = max(2, zones)
	}
}

// Resolve chooses ranges with room for the pools. It chooses larger ones than the usual only
// if those are too small, so that adding nodes rarely replaces the network.
func (n *Network) Resolve(needs addressNeeds, privateNodes bool) {
	if n.Nodes == "" {
		n.Nodes = fmt.Sprintf("10.0.0.0/%d", min(20, max(18, prefixFor(needs.nodeAddresses()))))
	}
	if n.Pods == "" {
		n.Pods = fmt.Sprintf("10.64.0.0/%d", min(14, max(10, prefixFor(needs.PodAddresses))))
	}
	if n.ControlPlane == "" && privateNodes {
		n.ControlPlane = "172.16.0.0/28"
	}
}

// Ranges returns the ranges that grow with the nodes. They must be valid.
func (n *Network) Ranges(needs addressNeeds) []capacity.Range {
	ranges := []capacity.Range{
		{Name: "nodes", CIDR: n.Nodes, Needed: needs.nodeAddresses()},
		{Name: "pods", CIDR: n.Pods, Needed: needs.PodAddresses},
	}
	for i := range ranges {
		ranges[i].Size = rangeSize(netip.MustParsePrefix(ranges[i].CIDR))
	}
	return ranges
}

// prefixFor returns the prefix length of the smallest range with a number of addresses.
func prefixFor(addresses int) int {
	return 32 - bits.Len(uint(max(addresses, 1)-1))
}

// rangeSize returns the number of addresses of a range.
func rangeSize(prefix netip.Prefix) int {
	return 1 << (32 - prefix.Bits())
}

// mostAuthorizedNetworks is the limit of GKE.
const mostAuthorizedNetworks = 100

func (c *Cluster) checkAuthorizedNetworks(p *input.Problems, cluster *field.Path) {
	networks, path := c.AuthorizedNetworks, cluster.Child("authorizedNetworks")
	if len(networks) > mostAuthorizedNetworks {
		p.Invalid(path, len(networks), "must be at most %d networks, the limit of GKE; merge adjacent ranges", mostAuthorizedNetworks)
	}
	private := len(networks) > 0
	for i, n := range networks {
		c.checkAuthorizedNetwork(p, path.Index(i), n)
		prefix, err := netip.ParsePrefix(n.CIDR)
		private = private && err == nil && reserved(prefix)
	}
	const first = "the stack creates the network, in which no machine can be when `pulumi up` creates the first Kubernetes objects"
	switch {
	case c.PrivateEndpoint:
		p.WarnFirst(cluster.Child("privateEndpoint"), "Pulumi must run inside the network %s, and %s; bring the cluster up without privateEndpoint first, and connect your machine", c.Name, first)
	case private:
		p.WarnFirst(path, "has only ranges that nobody has on the internet, and %s; add the public address that you connect from", first)
	case len(networks) == 0:
		p.WarnFirst(path, "is empty, so that only machines in the network %s can connect to the control plane, and %s; add the public address that you connect from", c.Name, first)
	}
	input.UniqueField(p, path, "cidr", networks, func(n AuthorizedNetwork) string { return n.CIDR }, "is already in authorizedNetworks[%d]; write each range once")
}

func (c *Cluster) checkAuthorizedNetwork(p *input.Problems, path *field.Path, n AuthorizedNetwork) {
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

// isPublic reports whether machines on the internet can have an address.
func isPublic(address netip.Addr) bool {
	return !address.Is4() || !reserved(netip.PrefixFrom(address, address.BitLen()))
}

func reserved(prefix netip.Prefix) bool {
	return slices.ContainsFunc(reservedRanges, func(r netip.Prefix) bool {
		return r.Bits() <= prefix.Bits() && r.Contains(prefix.Addr())
	})
}

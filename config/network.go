package config

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
)

// addressRange is one of the network's ranges, with the sizes that GKE takes as
// lengths of the prefix (GKE, "VPC-native clusters", "IP address ranges"; "Best
// practices for GKE networking" for the control plane).
type addressRange struct {
	name              string
	cidr              string
	shortest, longest int
	prefix            netip.Prefix
}

func (v *validator) network() {
	path, n := field.NewPath(clusterKey, "network"), v.stack.Cluster.Network
	if v.stack.Cluster.Existing != nil {
		return
	}
	v.authorizedNetworks(field.NewPath(clusterKey, "authorizedNetworks"))
	ranges := []addressRange{
		{name: "nodes", cidr: n.Nodes, shortest: 8, longest: 29},
		{name: "pods", cidr: n.Pods, shortest: 9, longest: 21},
		{name: "services", cidr: n.Services, shortest: 16, longest: 27},
	}
	if v.stack.Cluster.hasPrivateNodes() {
		ranges = append(ranges, addressRange{name: "controlPlane", cidr: n.ControlPlane, shortest: 28, longest: 28})
	}
	var valid []addressRange
	for _, r := range ranges {
		prefix, ok := v.cidr(path.Child(r.name), r.cidr)
		if r.prefix = prefix; ok && v.allowedSize(path, r) {
			v.overlap(path, r, valid)
			valid = append(valid, r)
		}
	}
	for _, r := range valid {
		switch r.name {
		case "nodes":
			v.holdsNodes(path, r)
		case "pods":
			v.holdsPods(path, r)
		}
	}
}

// cidr parses a range of IPv4 addresses in CIDR notation.
func (v *validator) cidr(path *field.Path, cidr string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(cidr)
	switch {
	case cidr == "":
		v.required(path, "write a range like 10.0.0.0/20")
	case err != nil:
		v.invalid(path, cidr, "must be a range of IPv4 addresses in CIDR notation, like 10.0.0.0/20")
	case !prefix.Addr().Is4():
		v.invalid(path, cidr, "must be a range of IPv4 addresses, like 10.0.0.0/20")
	case prefix != prefix.Masked():
		v.invalid(path, cidr, "must be a network, without host bits; write %s", prefix.Masked())
	default:
		return prefix, true
	}
	return netip.Prefix{}, false
}

func (v *validator) allowedSize(path *field.Path, r addressRange) bool {
	length := r.prefix.Bits()
	switch {
	case length >= r.shortest && length <= r.longest:
		return true
	case r.shortest == r.longest:
		v.invalid(path.Child(r.name), r.cidr, "must be a /%d exactly, as GKE takes no other for the control plane; write %s/%d", r.longest, r.prefix.Addr(), r.longest)
	default:
		v.invalid(path.Child(r.name), r.cidr, "must be from a /%d to a /%d; write %s/%d", r.shortest, r.longest, r.prefix.Addr(), min(max(length, r.shortest), r.longest))
	}
	return false
}

func (v *validator) overlap(path *field.Path, r addressRange, others []addressRange) {
	for _, other := range others {
		if r.prefix.Overlaps(other.prefix) {
			v.invalid(path.Child(r.name), r.cidr, "overlaps %s, which is %s; write ranges that are apart", other.name, other.prefix)
		}
	}
}

// holdsNodes checks that each node gets an address.
func (v *validator) holdsNodes(path *field.Path, r addressRange) {
	holds, needs := size(r.prefix)-capacity.ReservedAddresses, v.stack.nodeAddresses()-capacity.ReservedAddresses
	if needs > holds {
		v.invalid(path.Child(r.name), r.cidr, "holds %d nodes, the stack has up to %d; write a /%d or larger, or fewer nodes", holds, needs, max(prefixFor(v.stack.nodeAddresses()), r.shortest))
	}
}

// holdsPods checks that each node gets the addresses that GKE gives to its pods.
func (v *validator) holdsPods(path *field.Path, r addressRange) {
	if needs := v.stack.podAddresses(); needs > size(r.prefix) {
		v.invalid(path.Child(r.name), r.cidr, "has %d addresses, and the pods of up to %d nodes take %d; write a /%d or larger, fewer nodes, or a smaller maxPodsPerNode", size(r.prefix), v.stack.mostNodes(), needs, max(prefixFor(needs), r.shortest))
	}
}

// nodeAddresses is how many addresses the subnetwork needs at most.
func (s *Stack) nodeAddresses() int {
	return s.mostNodes() + capacity.ReservedAddresses
}

// podAddresses is how many addresses pods need at most.
func (s *Stack) podAddresses() int {
	addresses := 0
	for _, p := range s.Pools() {
		addresses += p.mostNodes() * capacity.PodAddresses(p.MaxPodsPerNode)
	}
	return addresses
}

// setDefaults gives ranges that hold the pools. A larger one than the usual is
// given only where that would be too small, so that more nodes do not mean
// another network.
func (n *Network) setDefaults(s *Stack) {
	setDefault(&n.Nodes, fmt.Sprintf("10.0.0.0/%d", min(20, max(18, prefixFor(s.nodeAddresses())))))
	setDefault(&n.Pods, fmt.Sprintf("10.64.0.0/%d", min(14, max(10, prefixFor(s.podAddresses())))))
	setDefault(&n.Services, "10.1.0.0/20")
	if s.Cluster.hasPrivateNodes() {
		setDefault(&n.ControlPlane, "172.16.0.0/28")
	}
}

// hasPrivateNodes reports whether the nodes have no public address. With public
// ones the control plane has no range in the network.
func (c *Cluster) hasPrivateNodes() bool {
	return c.PrivateNodes == nil || *c.PrivateNodes
}

// prefixFor is the length of the smallest range that holds a number of addresses.
func prefixFor(addresses int) int {
	return 32 - bits.Len(uint(max(addresses, 1)-1))
}

// size is the number of addresses of a range.
func size(prefix netip.Prefix) int {
	return 1 << (32 - prefix.Bits())
}

// mostAuthorizedNetworks is GKE's limit.
const mostAuthorizedNetworks = 100

func (v *validator) authorizedNetworks(path *field.Path) {
	networks := v.stack.Cluster.AuthorizedNetworks
	if len(networks) > mostAuthorizedNetworks {
		v.invalid(path, len(networks), "must be at most %d networks, as GKE takes no more; join those that are next to each other", mostAuthorizedNetworks)
	}
	cidrs := make([]string, len(networks))
	for i, n := range networks {
		cidrs[i] = n.CIDR
		v.authorizedNetwork(path.Index(i), n)
	}
	unique(cidrs, func(i, first int) {
		v.duplicate(path.Index(i).Child("cidr"), cidrs[i], "is that of authorizedNetworks[%d]; write it once", first)
	})
}

func (v *validator) authorizedNetwork(path *field.Path, n AuthorizedNetwork) {
	if n.Name == "" {
		v.required(path.Child("name"), "write what the network is, like office")
	}
	at := path.Child("cidr")
	switch prefix, ok := v.cidr(at, n.CIDR); {
	case !ok:
	case prefix.Bits() == 0:
		v.invalid(at, n.CIDR, "opens the control plane to the world; write the range that its operators come from")
	case prefix.Bits() < 8:
		v.invalid(at, n.CIDR, "opens the control plane to practically the world; write the range that its operators come from, at most a /8")
	case v.stack.Cluster.PrivateEndpoint && !reserved(prefix):
		v.invalid(at, n.CIDR, "is of public addresses, from which the private endpoint cannot be reached, and which GKE refuses with it; write a range of a network that is connected to the cluster's, or remove privateEndpoint")
	}
}

// reservedRanges are those that no public address is in (VPC, "Subnets", "Valid
// IPv4 ranges").
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

func reserved(prefix netip.Prefix) bool {
	return slices.ContainsFunc(reservedRanges, func(r netip.Prefix) bool {
		return r.Bits() <= prefix.Bits() && r.Contains(prefix.Addr())
	})
}

// mostNodes is the number of nodes that the stack has when every pool is at its
// maximum.
func (s *Stack) mostNodes() int {
	nodes := 0
	for _, p := range s.Pools() {
		nodes += p.mostNodes()
	}
	return nodes
}

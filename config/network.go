package config

import (
	"math/bits"
	"net/netip"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
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
	v.authorizedNetworks(field.NewPath(clusterKey, "authorizedNetworks"))
	ranges := []addressRange{
		{name: "nodes", cidr: n.Nodes, shortest: 8, longest: 29},
		{name: "pods", cidr: n.Pods, shortest: 9, longest: 21},
		{name: "services", cidr: n.Services, shortest: 16, longest: 27},
		{name: "controlPlane", cidr: n.ControlPlane, shortest: 28, longest: 28},
	}
	var valid []addressRange
	for _, r := range ranges {
		prefix, ok := v.cidr(path.Child(r.name), r.cidr)
		if r.prefix = prefix; ok && v.size(path, r) {
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

func (v *validator) size(path *field.Path, r addressRange) bool {
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

// holdsNodes checks that each node gets an address. Google keeps four of a
// subnetwork's primary range.
func (v *validator) holdsNodes(path *field.Path, r addressRange) {
	nodes := v.stack.mostNodes()
	if holds := 1<<(32-r.prefix.Bits()) - 4; nodes > holds {
		v.invalid(path.Child(r.name), r.cidr, "holds %d nodes, the stack has up to %d; write a %s or larger, or fewer nodes", holds, nodes, prefixFor(nodes+4, 32, r.shortest))
	}
}

// holdsPods checks that each node gets the /24 that GKE gives to its pods.
func (v *validator) holdsPods(path *field.Path, r addressRange) {
	nodes := v.stack.mostNodes()
	if holds := 1 << (24 - r.prefix.Bits()); nodes > holds {
		v.invalid(path.Child(r.name), r.cidr, "holds %d nodes of a /24 each, the stack has up to %d; write a %s or larger, or fewer nodes", holds, nodes, prefixFor(nodes, 24, r.shortest))
	}
}

// prefixFor is the smallest range, as "/14", that holds a number of blocks of
// which each is a /block, but none larger than the largest allowed.
func prefixFor(count, block, shortest int) string {
	length := block - bits.Len(uint(count-1))
	return "/" + strconv.Itoa(max(length, shortest))
}

func (v *validator) authorizedNetworks(path *field.Path) {
	networks := v.stack.Cluster.AuthorizedNetworks
	cidrs := make([]string, len(networks))
	for i, n := range networks {
		cidrs[i] = n.CIDR
		at := path.Index(i)
		if n.Name == "" {
			v.required(at.Child("name"), "write what the network is, like office")
		}
		if prefix, ok := v.cidr(at.Child("cidr"), n.CIDR); ok && prefix.Bits() == 0 {
			v.invalid(at.Child("cidr"), n.CIDR, "opens the control plane to the world; write the range that its operators come from")
		}
	}
	unique(cidrs, func(i, first int) {
		v.duplicate(path.Index(i).Child("cidr"), cidrs[i], "is that of authorizedNetworks[%d]; write it once", first)
	})
}

// mostNodes is the number of nodes that the stack has when every pool is at its
// maximum.
func (s *Stack) mostNodes() int {
	nodes := s.Cluster.SystemPool.Nodes
	for _, p := range s.NodePools {
		nodes += p.mostNodes()
	}
	return nodes
}

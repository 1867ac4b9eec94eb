package config

import (
	"cmp"
	"fmt"
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
	Name string `json:"name,omitempty"`
	// CIDR is a range like 203.0.113.0/24.
	CIDR string `json:"cidr"`
}

// Network are the address ranges of the cluster's network, in CIDR notation. They must not overlap.
type Network struct {
	// Nodes is the range for nodes, the subnetwork's primary one. Default 10.0.0.0/20, or larger if the pools need
	// it.
	Nodes string `json:"nodes,omitempty"`
	// Pods is the range for pods. GKE reserves twice `maxPodsPerNode` addresses for each
	// node, a /24 for 110. Default 10.64.0.0/14, or larger if the pools need it.
	Pods string `json:"pods,omitempty"`
	// Services is the range for services.
	Services string `json:"services,omitempty" default:"10.1.0.0/20"`
	// ControlPlane is the /28 of the control plane.
	ControlPlane string `json:"controlPlane,omitempty" default:"172.16.0.0/28"`
}

// addressNeeds counts the addresses that the nodes of all pools need at their maximum.
type addressNeeds struct {
	Nodes        int
	PodAddresses int // reserved by GKE for the pods of the nodes
}

// nodeAddresses returns the number of addresses that the subnetwork needs.
func (n addressNeeds) nodeAddresses() int { return n.Nodes + capacity.ReservedAddresses }

// check checks that ranges are private, of the sizes that GKE accepts (GKE, "VPC-native clusters", "Private
// clusters"), and have room for the nodes. Google Cloud refuses ranges that overlap.
func (n *Network) check(p *input.Problems, path *field.Path, needs addressNeeds) {
	for _, r := range []struct {
		name, cidr        string
		needed            int
		largest, smallest int // prefix lengths
	}{
		{"nodes", n.Nodes, needs.nodeAddresses(), 8, 29}, {"pods", n.Pods, needs.PodAddresses, 9, 24},
		{"services", n.Services, 0, 16, 28}, {"controlPlane", n.ControlPlane, 0, 28, 28},
	} {
		at := path.Child(r.name)
		switch prefix, ok := checkCIDR(p, at, r.cidr); {
		case !ok:
		case !reserved(prefix) || prefix.Overlaps(dockerBridge):
			p.Invalid(at, r.cidr, "must have private addresses, because the cluster could not reach the owners of others, and none "+
				"of %s, which Docker uses on the nodes; write a range like 10.0.0.0/%d", dockerBridge, prefix.Bits())
		case prefix.Bits() < r.largest || prefix.Bits() > r.smallest:
			better := netip.PrefixFrom(prefix.Addr(), min(max(prefix.Bits(), r.largest), r.smallest))
			p.Instead(at, r.cidr, better.String(), "must be from a /%d to a /%d, which GKE accepts here", r.largest, r.smallest)
		case r.needed > rangeSize(prefix):
			p.Instead(at, r.cidr, netip.PrefixFrom(prefix.Addr(), prefixFor(r.needed)).Masked().String(), "has %d addresses, but up to "+
				"%d nodes need %d; use fewer nodes, or lower maxPodsPerNode", rangeSize(prefix), needs.Nodes, r.needed)
		}
	}
}

// dockerBridge is a range that every node uses (GKE, "VPC-native clusters").
var dockerBridge = netip.MustParsePrefix("172.17.0.0/16")

// checkCIDR parses a range of IPv4 addresses in CIDR notation.
func checkCIDR(p *input.Problems, path *field.Path, cidr string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(cidr)
	switch {
	case cidr == "": // reported already
	case err != nil || !prefix.Addr().Is4() || prefix != prefix.Masked():
		p.Invalid(path, cidr, "must be a range of IPv4 addresses in CIDR notation, without host bits, like 10.0.0.0/20")
	default:
		return prefix, true
	}
	return netip.Prefix{}, false
}

// resolve chooses ranges with room for the pools. It chooses larger ones than the usual only
// if those are too small, so that adding nodes rarely replaces the network.
func (n *Network) resolve(needs addressNeeds) {
	n.Nodes = cmp.Or(n.Nodes, fmt.Sprintf("10.0.0.0/%d", min(20, max(18, prefixFor(needs.nodeAddresses())))))
	n.Pods = cmp.Or(n.Pods, fmt.Sprintf("10.64.0.0/%d", min(14, max(10, prefixFor(needs.PodAddresses)))))
}

// ranges returns the ranges that grow with the nodes. They must be valid.
func (n *Network) ranges(needs addressNeeds) []capacity.Range {
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
func prefixFor(addresses int) int { return 32 - bits.Len(uint(max(addresses, 1)-1)) }

// rangeSize returns the number of addresses of a range.
func rangeSize(prefix netip.Prefix) int { return 1 << (32 - prefix.Bits()) }

// reservedRanges contain no public addresses (VPC, "Subnets", "Valid IPv4 ranges").
var reservedRanges = []string{
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
}

func reserved(prefix netip.Prefix) bool {
	return slices.ContainsFunc(reservedRanges, func(text string) bool {
		r := netip.MustParsePrefix(text)
		return r.Bits() <= prefix.Bits() && r.Contains(prefix.Addr())
	})
}

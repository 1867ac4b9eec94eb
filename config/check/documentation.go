package check

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// documentation are the ranges that no machine has (RFC 5737, RFC 3849, and RFC 9637).
var documentation = []netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("3fff::/20"),
}

// Documentation reports whether an address is in a range for examples in documentation.
func Documentation(address netip.Addr) bool {
	return slices.ContainsFunc(documentation, func(r netip.Prefix) bool { return r.Contains(address.Unmap()) })
}

// WarnOfDocumentation warns of an address, or a range in CIDR notation, that no machine has, and
// returns whether it is one. Remedy says what to write.
func WarnOfDocumentation(p *Problems, at *field.Path, text, remedy string) bool {
	address, err := netip.ParseAddr(text)
	if prefix, bad := netip.ParsePrefix(text); err != nil && bad == nil {
		address = prefix.Addr()
	}
	if !Documentation(address) {
		return false
	}
	p.Warn(at, "%s is reserved for examples in documentation, and no machine has such an address; %s", text, remedy)
	return true
}

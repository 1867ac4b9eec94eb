package node

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
)

// The addresses of every machine. They exist only in its own network.
const (
	// serviceSubnet is the API server's default for the addresses of Services.
	serviceSubnet = "10.0.0.0/24"
	// dnsAddress is the one at which GKE's nodes answer for names.
	dnsAddress = "169.254.20.10"
)

// link joins the host with a machine.
type link struct {
	// name is the name of the host's interface.
	name string
	// host and machine are the addresses of the two ends, prefix bits long.
	host, machine netip.Addr
	prefix        int
	// pods are the addresses of the machine's pods. kwok's pods have other addresses, which no connection reaches.
	pods netip.Prefix
}

// linkOf returns the link of the machine in dir. Machines side by side have different ones: the addresses
// are four out of 198.18.0.0/15, which is for tests between machines (RFC 2544), and for its pods 256 out of
// 100.64.0.0/10, which providers share (RFC 6598). Neither is routed.
func linkOf(dir string) link {
	sum := sha256.Sum256([]byte(dir))
	number := binary.BigEndian.Uint32(sum[:4])
	var base, pods [4]byte
	binary.BigEndian.PutUint32(base[:], 198<<24|18<<16|number%(1<<15)*4)
	binary.BigEndian.PutUint32(pods[:], 100<<24|64<<16|number%(1<<14)*256)
	subnet := netip.AddrFrom4(base)
	return link{
		// An interface's name has at most 15 characters.
		name:    fmt.Sprintf("node-%08x", number),
		host:    subnet.Next(),
		machine: subnet.Next().Next(),
		prefix:  30,
		pods:    netip.PrefixFrom(netip.AddrFrom4(pods), 24),
	}
}

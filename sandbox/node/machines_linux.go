package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// network joins the machines of a sandbox that run with each other, each with each by a link of
// its own, as if they were in one network. The host takes no part in it.
type network struct {
	mu      sync.Mutex
	members map[int]member
}

// member is a machine in the network.
type member struct {
	// pid is the machine's first process.
	pid     int
	address netip.Addr
}

// join links a machine with the others.
func (n *network) join(m machine, pid int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	joining := member{pid, linkOf(m.Dir).machine}
	for number, other := range n.members {
		if err := inNetwork(pid, func() error {
			return ip(fmt.Sprintf("link add %s type veth peer name %s netns %d", linkTo(number), linkTo(m.number), other.pid))
		}); err != nil {
			return err
		}
		if err := errors.Join(joining.routeTo(other, number), other.routeTo(joining, m.number)); err != nil {
			return err
		}
	}
	if n.members == nil {
		n.members = map[int]member{}
	}
	n.members[m.number] = joining
	return nil
}

// linkTo returns the name of a link to the machine with a number.
func linkTo(number int) string { return fmt.Sprintf("machine-%d", number) }

// routeTo has the packets to another machine, and to its pods, take the link to it.
func (m member) routeTo(other member, number int) error {
	link := linkTo(number)
	return inNetwork(m.pid, func() error {
		return ip(
			// For a packet that it forwards, the machine asks in its own name who has an address.
			// Without one here, it would do so with an address that every machine has.
			fmt.Sprintf("addr add %s/32 dev %s", m.address, link),
			fmt.Sprintf("link set %s up", link),
			fmt.Sprintf("route add %s/32 dev %s src %s", other.address, link, m.address),
			fmt.Sprintf("route add %s via %s dev %s src %s", podSubnet(number), other.address, link, m.address),
		)
	})
}

// leave forgets a machine. The kernel removes its links with its network.
func (n *network) leave(m machine) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.members, m.number)
}

// dial connects to an address of a machine or of one of its pods, from the machine's network,
// where the socket stays.
func (n *network) dial(ctx context.Context, address string) (connection net.Conn, err error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	pid, err := n.owner(to.Addr())
	if err != nil {
		return nil, err
	}
	entered := inNetwork(pid, func() error {
		connection, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
		return nil
	})
	return connection, errors.Join(entered, err)
}

// owner returns the first process of the machine that has an address, or whose pods have it.
func (n *network) owner(address netip.Addr) (pid int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for number, member := range n.members {
		if member.address == address || podSubnet(number).Contains(address) {
			return member.pid, nil
		}
	}
	return 0, fmt.Errorf("no real node that runs has the address %s", address)
}

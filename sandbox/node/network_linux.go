package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"

	"persia/sandbox/controlplane"
)

// connect links the host with the machine of the process pid, and relays the API server
// and the server of buckets into the machine. The machine has no route to anything but the host's end of the link:
// it does not answer packets that come from elsewhere.
func (m machine) connect(ctx context.Context, pid int) ([]net.Listener, error) {
	config, err := clientcmd.BuildConfigFromFlags("", m.Kubeconfig)
	if err != nil {
		return nil, err
	}
	server := strings.TrimPrefix(config.Host, "https://")
	_, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	l := linkOf(m.Dir)
	if err := ip(
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", l.name, pid),
		fmt.Sprintf("addr add %s/%d dev %s", l.host, l.prefix, l.name),
		fmt.Sprintf("link set %s up", l.name),
		// For the API server, which asks webhooks.
		fmt.Sprintf("route add %s via %s", l.pods, l.machine),
	); err != nil {
		return nil, err
	}
	// The machine's programs connect to the address in the kubeconfig, and pods to
	// the address of the Service kubernetes.
	targets := map[string]string{
		net.JoinHostPort("127.0.0.1", port): server,
		net.JoinHostPort(controlplane.AdvertisedAddress, strconv.Itoa(controlplane.AdvertisedPort)): server,
	}
	if m.Buckets != "" {
		targets[m.Buckets] = m.Buckets
	}
	var relays []net.Listener
	err = inNetwork(pid, func() error {
		if err := ip(
			"link set lo up",
			"addr add "+controlplane.AdvertisedAddress+"/32 dev lo",
			"addr add "+dnsAddress+"/32 dev lo",
			fmt.Sprintf("addr add %s/%d dev eth0", l.machine, l.prefix),
			"link set eth0 up",
			// Until kube-proxy knows a Service, packets to it get lost and are sent
			// again, as on any node. Without a route, connecting would fail at once.
			"route add blackhole "+serviceSubnet,
			// Likewise, packets to a pod that has ended.
			"route add blackhole "+l.pods.String(),
		); err != nil {
			return err
		}
		for address := range targets {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			relays = append(relays, listener)
		}
		return nil
	})
	for _, listener := range relays {
		go relay(ctx, listener, targets[listener.Addr().String()])
	}
	return relays, err
}

// ip runs commands of the program ip.
func ip(commands ...string) error {
	cmd := hostCommand("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(commands, "; "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

func exists(link string) bool {
	_, err := net.InterfaceByName(link)
	return err == nil
}

// inNetwork calls f on a thread that is in the network namespace of the process pid. The
// programs that f starts are in it too.
func inNetwork(pid int, f func() error) error {
	done := make(chan error)
	go func() { done <- onThreadIn(fmt.Sprintf("/proc/%d/ns/net", pid), f) }()
	return <-done
}

// onThreadIn calls f while the goroutine's thread is in a network namespace, and then returns to the
// thread's own. A thread that cannot return ends with the goroutine, unless it is the main one, which
// never ends and would keep the machine's network, and the other ends of its links, after the machine.
func onThreadIn(namespace string, f func() error) error {
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }()
	network, err := os.Open(namespace)
	if err != nil {
		return err
	}
	defer func() { _ = network.Close() }()
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the machine's network: %w", err)
	}
	err = f()
	if left := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); left != nil {
		return errors.Join(err, fmt.Errorf("leave the machine's network: %w", left))
	}
	runtime.UnlockOSThread()
	return err
}

// relay forwards connections to the address until the listener is closed.
func relay(ctx context.Context, listener net.Listener, address string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = client.Close() }()
			var dialer net.Dialer
			server, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(client, server)
		}()
	}
}

func closeAll(listeners []net.Listener) {
	for _, listener := range listeners {
		_ = listener.Close()
	}
}
